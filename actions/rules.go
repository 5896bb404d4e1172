package actions

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that asks, before each irreversible step, before each of
// a plan that can be taken back and before each of a kind that is exclusive, whether an
// EKCO that started elsewhere would know of the action.
const Mirrored = "Mirrored"

// SafeMode is the rule of policy that is asked before every step of every action: it
// stops also what a person asked for.
const SafeMode = fsm.RuleSafeMode

// guarded adds to the step's preflights what is asked whatever its plan lists:
// plans that were made before it was asked are guarded as well.
func (r *Runner) guarded(kind *Kind, record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := kind.standing(record)
	if r.cfg.Preflights[Mirrored] != nil && kind.mustBeMirrored(record, planned) {
		guards = append(guards, Mirrored)
	}
	if kind.Guards != nil {
		guards = append(guards, kind.Guards(record, planned)...)
	}
	planned.Preflights = union(planned.Preflights, guards)
	return planned
}

func (k *Kind) mustBeMirrored(record journal.ActionRecord, planned journal.PlannedStep) bool {
	return (k.Exclusive || planned.Irreversible || len(record.Plan.Undo) > 0) && !record.Request.DryRun
}
