package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that asks, before each irreversible step and before
// each of a plan that can be taken back, whether an EKCO that started elsewhere
// would know of the action.
const Mirrored = "Mirrored"

// PurgePolicy lists the preflights by which policy judges a purge.
func PurgePolicy() []string {
	return []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"}
}

// StandingPolicy lists the preflights by which policy judges every step of an
// action. What keeps EKCO from beginning one by itself keeps it from going on, too;
// SafeMode stops also what a person asked for.
func StandingPolicy(record journal.ActionRecord) []string {
	rules := []string{"SafeMode"}
	if record.ByPerson() {
		return rules
	}
	return append(rules, PurgePolicy()...)
}

// isPolicy reports whether a preflight judges by what EKCO knows already.
func isPolicy(name string) bool {
	return slices.Contains(StandingPolicy(journal.ActionRecord{}), name)
}

// guarded adds to the step's preflights what is asked whatever its plan lists:
// plans that were made before it was asked are guarded as well.
func (r *Runner) guarded(record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := StandingPolicy(record)
	if r.mustBeMirrored(record, planned) {
		guards = append(guards, Mirrored)
	}
	guards = slices.DeleteFunc(guards, func(name string) bool { return r.cfg.Preflights[name] == nil })
	if kind, ok := r.cfg.Kinds[record.Kind].(Guardian); ok {
		guards = append(guards, kind.Guards(record, planned)...)
	}
	planned.Preflights = union(planned.Preflights, guards)
	return planned
}

func (r *Runner) mustBeMirrored(record journal.ActionRecord, planned journal.PlannedStep) bool {
	return (planned.Irreversible || len(record.Plan.Undo) > 0) && !record.Request.DryRun
}
