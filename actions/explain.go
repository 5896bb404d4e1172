package actions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Explain returns what Run would do with the record: its plan, and the present answer of each preflight, in the order
// of the plan. The action need not have been requested. Explain changes and writes nothing. [Mirrored] would write, so
// Explain does not run it, and lists it last with [VerdictUnasked].
func (r *Runner) Explain(ctx context.Context, record journal.ActionRecord) (journal.Plan, []Check, error) {
	kind := r.kindFor(record)
	if kind == nil {
		return journal.Plan{}, nil, fmt.Errorf("explain action %s: this EKCO does not know actions of kind %q", record.ID, record.Kind)
	}
	record = snapshot(record)
	if !record.Planned {
		plan, err := r.plan(ctx, kind, record)
		if err != nil {
			return journal.Plan{}, nil, err
		}
		record.Plan = plan
	}
	var names []string
	mirrored := false
	for _, step := range record.Plan.Steps {
		for _, name := range r.withGuards(kind, record, step).Preflights {
			if name == Mirrored {
				mirrored = true
			} else if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	checks, err := r.check(ctx, kind, record, names, nil)
	if err == nil {
		checks, err = r.waitUntilLasting(ctx, kind, record, checks)
	}
	if err == nil && mirrored {
		checks = append(checks, Check{Mirrored, Verdict{Kind: VerdictUnasked, Reason: unaskedMirror}})
	}
	return record.Plan, checks, err
}

const unaskedMirror = "checked when the action runs, because this check writes to the cluster"

// plan makes and checks the plan of an action.
func (r *Runner) plan(ctx context.Context, kind *Kind, record journal.ActionRecord) (journal.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	plan, err := r.askForPlan(ctx, kind, record)
	if err == nil {
		for _, steps := range [][]journal.PlannedStep{plan.Steps, plan.Undo} {
			kind.expandPolicy(steps)
			kind.fillDomains(steps)
		}
		err = cmp.Or(checkPlan(plan), kind.checkDomains(plan))
	}
	if err != nil {
		return journal.Plan{}, fmt.Errorf("plan %s of %s: %w", record.Kind, record.Subject.Name, err)
	}
	return plan, nil
}

func (r *Runner) askForPlan(ctx context.Context, kind *Kind, record journal.ActionRecord) (plan journal.Plan, err error) {
	defer Catch(r.cfg.Log.With("action", record.ID), "planning", &err)
	return kind.Plan(ctx, record)
}

// snapshot returns a copy of the record that later events do not change.
func snapshot(record journal.ActionRecord) journal.ActionRecord {
	record.Steps = maps.Clone(record.Steps)
	record.Holds, record.HeldSince = maps.Clone(record.Holds), maps.Clone(record.HeldSince)
	record.Left = maps.Clone(record.Left)
	return record
}
