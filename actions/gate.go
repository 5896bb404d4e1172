package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// gateCounts is how long the answers of a gate count for the steps behind it:
// long enough for those that follow at once.
const gateCounts = 10 * time.Second

// gateOf returns what the plan's gate asks, nothing if the plan has none.
func gateOf(plan journal.Plan) []string {
	for _, step := range plan.Steps {
		if step.Does == DoesGate {
			return step.Preflights
		}
	}
	return nil
}

// askedBefore returns the preflights of a group's steps as they are asked now:
// before the first step that changes something, and before the first that cannot
// be undone, also those of the gate, unless they have just been asked, and nothing
// was changed since that can be undone. Days can lie between the gate and those
// steps, and restarts.
func (a *run) askedBefore(g *group, preflights []string) []string {
	first := g.changes && !a.anyDone(func(s *stepState) bool { return s.group.changes })
	final := g.irreversible && !a.anyDone(func(s *stepState) bool { return s.group.irreversible })
	if (!first && !final) || time.Since(a.gatePassed) < gateCounts {
		return preflights
	}
	return union(preflights, a.gate)
}

// anyDone reports whether one of those steps is done.
func (a *run) anyDone(those func(*stepState) bool) bool {
	return slices.ContainsFunc(a.steps, func(s *stepState) bool { return those(s) && a.progress(s).Done() })
}

// changes reports whether a planned step changes something: plans with a gate ask
// policy before those, and before no other but the gate.
func (k *Kind) changes(planned journal.PlannedStep) bool {
	asked := func(rule string) bool { return slices.Contains(planned.Preflights, rule) }
	return planned.Does != DoesGate && !slices.ContainsFunc(k.Rules, func(rule string) bool { return !asked(rule) })
}

// passed notes that these answers let steps start.
func (a *run) passed(checks []Check) {
	for _, name := range a.gate {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Preflight == name }) {
			return
		}
	}
	a.gatePassed = time.Now()
}

// union returns the names, and then those of the others that are not among them.
func union(names, others []string) []string {
	all := slices.Clip(names)
	for _, name := range others {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
