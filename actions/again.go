package actions

import (
	"context"
	"maps"
)

// CheckAgain asks the preflights of the step once more, right before an effect. A step needs that whose Do takes long until
// then: somebody may have paused EKCO meanwhile, or what is to be changed may be another object. Where something speaks
// against the effect, it returns an [UnfinishedError] that waits, and the preflights, which are asked next, hold the step.
//
// Only Do may call it. A step that must go on at once, see [StepDef.MustFinish], is stopped by [SafeMode] alone.
func (c StepContext) CheckAgain(ctx context.Context) error {
	return c.asks(ctx, func(string) bool { return true })
}

// CheckPolicy is [StepContext.CheckAgain] for steps that have effects all the time, and ask now and then: only the rules of
// policy are asked, and [Definition.AskedLast].
func (c StepContext) CheckPolicy(ctx context.Context) error {
	return c.asks(ctx, c.askedLast)
}

func (c StepContext) asks(ctx context.Context, which func(name string) bool) error {
	if c.ask == nil {
		return errNotUnderWay
	}
	return c.ask(ctx, which)
}

// asksOf returns how a step asks again under way. It asks what was asked before it was started, of the same record: a
// preflight that rests between attempts, and not after a retry, must not take this attempt for one that has failed.
func (a *run) asksOf(s *stepState, record StepContext) func(context.Context, func(string) bool) error {
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
