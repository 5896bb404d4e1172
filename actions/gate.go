package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// gateMaxAge is the maximum age of a gate's answers when a step starts. Steps that follow the gate at once need not run
// its preflights again.
const gateMaxAge = 10 * time.Second

// gatePreflights returns the preflights of the plan's gate, or nil if the plan has no gate.
func gatePreflights(plan journal.Plan) []string {
	for _, step := range plan.Steps {
		if step.Does == DoesGate {
			return step.Preflights
		}
	}
	return nil
}

// askedBefore returns the preflights to run before a group's steps. Before the first step that changes something and
// before the first irreversible step, it adds the preflights of the gate, because days and restarts can lie between
// gate and step. It omits them if the gate passed just now and no reversible step has started since.
func (a *run) askedBefore(g *group, preflights []string) []string {
	first := g.changes && !a.anyDone(func(s *stepState) bool { return s.group.changes })
	final := g.irreversible && !a.anyDone(func(s *stepState) bool { return s.group.irreversible })
	if (!first && !final) || time.Since(a.gatePassed) < gateMaxAge {
		return preflights
	}
	return Union(preflights, a.gate)
}

// anyDone reports whether a step that matches is done.
func (a *run) anyDone(matches func(*stepState) bool) bool {
	return slices.ContainsFunc(a.steps, func(s *stepState) bool { return matches(s) && a.stepRecord(s).Done() })
}

// changesSomething reports whether a planned step changes something. A plan with a gate lists the rules of policy only
// in such steps and in the gate.
func (k *Kind) changesSomething(planned journal.PlannedStep) bool {
	asked := func(rule string) bool { return slices.Contains(planned.Preflights, rule) }
	return planned.Does != DoesGate && !slices.ContainsFunc(k.Rules, func(rule string) bool { return !asked(rule) })
}

// recordGatePassed records the time at which all preflights of the gate let steps start.
func (a *run) recordGatePassed(checks []Check) {
	for _, name := range a.gate {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Preflight == name }) {
			return
		}
	}
	a.gatePassed = time.Now()
}

// Union returns names, followed by the elements of others that are not in names.
func Union(names, others []string) []string {
	all := slices.Clip(names)
	for _, name := range others {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
