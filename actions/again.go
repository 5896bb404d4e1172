package actions

import (
	"context"
	"maps"
)

// CheckAgain asks the step's preflights again, right before an effect. A step needs it if its Do takes long until then:
// EKCO may be paused by now, or the object replaced. If a preflight is against the effect, CheckAgain returns an
// [UnfinishedError] that waits. EKCO then asks the preflights again, and they hold the step.
//
// Only Do may call it. For a step that must finish, see [StepDef.MustFinish], it asks only [SafeMode].
func (c StepContext) CheckAgain(ctx context.Context) error {
	return c.askAgain(ctx, func(string) bool { return true })
}

// CheckPolicy is [StepContext.CheckAgain] for steps with a long series of effects, which call it now and then: it asks
// only the rules of policy and [Definition.AskedLast].
func (c StepContext) CheckPolicy(ctx context.Context) error {
	return c.askAgain(ctx, c.askedLast)
}

func (c StepContext) askAgain(ctx context.Context, which func(name string) bool) error {
	if c.ask == nil {
		return errNotRunning
	}
	return c.ask(ctx, which)
}

// askFunc returns the function with which a running step asks its preflights again. They get a record
// that does not count this attempt: a preflight that waits between attempts would take it for a failed one.
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
