package actions

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Mirrored is the preflight that checks whether an EKCO on another node would know the action. It is asked before each
// irreversible step, each step of a plan with undo steps, and each step of an exclusive kind.
const Mirrored = "Mirrored"

// SafeMode is the rule of policy that is asked before every step of every action: it also stops a person's action.
const SafeMode = fsm.RuleSafeMode

// guarded adds the preflights that are asked even if the plan does not list them: plans of older versions need them,
// too.
func (r *Runner) guarded(kind *Kind, record journal.ActionRecord, planned journal.PlannedStep) journal.PlannedStep {
	guards := kind.policyRules(record)
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
