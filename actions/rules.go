package actions

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that requires the action to be in the mirror, so that an EKCO on another node would know
// the action. It runs before each irreversible step, each step of a plan with undo steps, and each step of an exclusive
// kind.
const Mirrored = "Mirrored"

// SafeMode is the rule of policy that runs before every step of every action, including actions that a person
// requested.
const SafeMode = fsm.RuleSafeMode

// withGuards adds preflights that must run even if the plan does not list them, as plans of older versions may not.
func (r *Runner) withGuards(kind *Kind, record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := kind.rulesFor(record)
	if r.cfg.Preflights[Mirrored] != nil && kind.mustBeMirrored(record, planned) {
		guards = append(guards, Mirrored)
	}
	if kind.Guards != nil {
		guards = append(guards, kind.Guards(record, planned)...)
	}
	planned.Preflights = Union(planned.Preflights, guards)
	return planned
}

func (k *Kind) mustBeMirrored(record journal.ActionRecord, planned journal.PlannedStep) bool {
	return (k.Exclusive || planned.Irreversible || len(record.Plan.Undo) > 0) && !record.Request.DryRun
}
