package actions

import (
	"context"
	"maps"
)

// CheckAgain runs the step's preflights again, right before an effect. It is for a Do that takes long before its
// effect: in between, a person may have paused EKCO, or the object may have been replaced. If a preflight does not
// pass, CheckAgain returns an [UnfinishedError] that waits. EKCO then runs the preflights as before an attempt, and the
// one that does not pass holds the step.
//
// Only Do may call CheckAgain. If a step must finish (see [StepDef.MustFinish]), CheckAgain runs only [SafeMode].
func (c StepContext) CheckAgain(ctx context.Context) error {
	return c.askAgain(ctx, func(string) bool { return true })
}

// CheckPolicy is a shorter [StepContext.CheckAgain] for steps that cause many effects one after the other: it runs only
// the rules of policy and [Definition.AskedLast].
func (c StepContext) CheckPolicy(ctx context.Context) error {
	return c.askAgain(ctx, c.askedLast)
}

func (c StepContext) askAgain(ctx context.Context, which func(name string) bool) error {
	if c.ask == nil {
		return errNotRunning
	}
	return c.ask(ctx, which)
}

// askFunc returns the function with which a running step runs its preflights again. It gives them a record without the
// running attempt, because a preflight that pauses after failed attempts would count that attempt as failed.
func (a *run) askFunc(s *stepState, record StepContext) func(context.Context, func(string) bool) error {
	preflights, before := s.planned.Preflights, record.Action
	before.Steps = maps.Clone(before.Steps)
	step := before.Steps[s.planned.ID]
	step.Attempts = max(0, step.Attempts-1)
	before.Steps[s.planned.ID] = step
	if a.mustFinish(s.group, []*stepState{s}) {
		preflights = []string{SafeMode}
	}
	return func(ctx context.Context, which func(name string) bool) error {
		var names []string
		for _, name := range preflights {
			if which(name) {
				names = append(names, name)
			}
		}
		checks, err := a.check(ctx, a.kind, before, names, nil)
		if err != nil {
			return err
		}
		if against := a.kind.gravest(checks, before); against.Verdict.Kind != VerdictPass {
			return &UnfinishedError{Left: against.Verdict.Reason, Waits: true}
		}
		return nil
	}
}
