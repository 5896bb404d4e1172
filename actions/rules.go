package actions

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that asks, before each irreversible step and before
// each of a plan that can be taken back, whether an EKCO that started elsewhere
// would know of the action.
const Mirrored = "Mirrored"

// SafeMode is the rule of policy that is asked before every step of every action: it
// stops also what a person asked for.
const SafeMode = "SafeMode"

// standing lists the preflights by which policy judges every step of an action.
func (d *Definition) standing(record journal.ActionRecord) []string {
	rules := []string{SafeMode}
	if record.ByPerson() {
		return rules
	}
	return append(rules, d.Rules...)
}

// guarded adds to the step's preflights what is asked whatever its plan lists:
// plans that were made before it was asked are guarded as well.
func (r *Runner) guarded(kind *Definition, record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := kind.standing(record)
	if r.mustBeMirrored(record, planned) {
		guards = append(guards, Mirrored)
	}
	guards = slices.DeleteFunc(guards, func(name string) bool { return r.cfg.Preflights[name] == nil })
	if kind.Guards != nil {
		guards = append(guards, kind.Guards(record, planned)...)
	}
	planned.Preflights = union(planned.Preflights, guards)
	return planned
}

func (r *Runner) mustBeMirrored(record journal.ActionRecord, planned journal.PlannedStep) bool {
	return (planned.Irreversible || len(record.Plan.Undo) > 0) && !record.Request.DryRun
}
