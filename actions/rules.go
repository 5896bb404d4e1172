package actions

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that asks, before each irreversible step and before
// each of a plan that can be taken back, whether an EKCO that started elsewhere
// would know of the action.
const Mirrored = "Mirrored"

// SafeMode is the rule of policy that is asked before every step of every action: it
// stops also what a person asked for.
const SafeMode = fsm.RuleSafeMode

// guarded adds to the step's preflights what is asked whatever its plan lists:
// plans that were made before it was asked are guarded as well.
func (r *Runner) guarded(kind *Kind, record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := kind.standing(record)
	if r.cfg.Preflights[Mirrored] != nil && r.mustBeMirrored(record, planned) {
		guards = append(guards, Mirrored)
	}
	if kind.Guards != nil {
		guards = append(guards, kind.Guards(record, planned)...)
	}
	planned.Preflights = union(planned.Preflights, guards)
	return planned
}

func (r *Runner) mustBeMirrored(record journal.ActionRecord, planned journal.PlannedStep) bool {
	return (planned.Irreversible || len(record.Plan.Undo) > 0) && !record.Request.DryRun
}
