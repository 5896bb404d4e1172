package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// gateMaxAge is how old the answers of a gate may be when a step starts: enough for the steps that follow at once.
const gateMaxAge = 10 * time.Second

// gatePreflights returns the preflights of the plan's gate, nil if the plan has none.
func gatePreflights(plan journal.Plan) []string {
	for _, step := range plan.Steps {
		if step.Does == DoesGate {
			return step.Preflights
		}
	}
	return nil
}

// askedBefore returns the preflights to ask now before a group's steps. Before the first step that changes something,
// and before the first irreversible one, these include the gate's, because days and restarts can lie between the gate
// and the step. They do not if the gate was asked just now and no reversible step has started since.
func (a *run) askedBefore(g *group, preflights []string) []string {
	first := g.changes && !a.anyDone(func(s *stepState) bool { return s.group.changes })
	final := g.irreversible && !a.anyDone(func(s *stepState) bool { return s.group.irreversible })
	if (!first && !final) || time.Since(a.gatePassed) < gateMaxAge {
		return preflights
	}
	return Union(preflights, a.gate)
}

// anyDone reports whether one of those steps is done.
func (a *run) anyDone(those func(*stepState) bool) bool {
	return slices.ContainsFunc(a.steps, func(s *stepState) bool { return those(s) && a.progress(s).Done() })
}

// changes reports whether a planned step changes something: plans with a gate ask policy only before such steps and at
// the gate.
func (k *Kind) changes(planned journal.PlannedStep) bool {
	asked := func(rule string) bool { return slices.Contains(planned.Preflights, rule) }
	return planned.Does != DoesGate && !slices.ContainsFunc(k.Rules, func(rule string) bool { return !asked(rule) })
}

// passed notes the time if these answers, which let steps start, include all of the gate's.
func (a *run) passed(checks []Check) {
	for _, name := range a.gate {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Preflight == name }) {
			return
		}
	}
	a.gatePassed = time.Now()
}

// Union returns the names, followed by the others that are not among them.
func Union(names, others []string) []string {
	all := slices.Clip(names)
	for _, name := range others {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
