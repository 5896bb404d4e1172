package actions

import (
	"context"
	"encoding/json"

	"github.com/replicatedhq/ekco/journal"
)

// PlanOf returns a function for [Definition.Plan] that decodes the input of the request and calls plan with it. If plan
// returns no facts, the input becomes the facts of the plan.
func PlanOf[In any](plan func(ctx context.Context, record journal.ActionRecord, in In) (journal.Plan, error)) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
		in, err := journal.InputOf[In](record.Request)
		if err != nil {
			return journal.Plan{}, err
		}
		made, err := plan(ctx, record, in)
		if err == nil && made.Facts == nil {
			made.Facts, err = json.Marshal(in)
		}
		return made, err
	}
}

// CheckOf returns a [Preflight] that decodes the input of the request and calls check with it. It holds the action if
// the input cannot be decoded.
func CheckOf[In any](check func(ctx context.Context, record journal.ActionRecord, in In) Verdict) Preflight {
	return PreflightFunc(func(ctx context.Context, record journal.ActionRecord) Verdict {
		in, err := journal.InputOf[In](record.Request)
		if err != nil {
			return Hold(err.Error()).About("input")
		}
		return check(ctx, record, in)
	})
}

// StepOf is a [Step] whose methods also get the decoded facts of the plan or input of the step.
type StepOf[In any] interface {
	Prove(ctx context.Context, step StepContext, in In) (Proof, error)
	Do(ctx context.Context, step StepContext, in In) (outputs json.RawMessage, err error)
}

// WithFacts returns a [Step] that calls step with the facts of the plan.
func WithFacts[In any](step StepOf[In]) Step { return stepOf[In]{step, StepContext.Facts} }

// WithInput returns a [Step] that calls step with the input of the step in the plan.
func WithInput[In any](step StepOf[In]) Step { return stepOf[In]{step, StepContext.Input} }

type stepOf[In any] struct {
	of   StepOf[In]
	read func(StepContext, any) error
}

func (s stepOf[In]) Prove(ctx context.Context, step StepContext) (proof Proof, err error) {
	var in In
	if err = s.read(step, &in); err == nil {
		proof, err = s.of.Prove(ctx, step, in)
	}
	return proof, err
}

func (s stepOf[In]) Do(ctx context.Context, step StepContext) (outputs json.RawMessage, err error) {
	var in In
	if err = s.read(step, &in); err == nil {
		outputs, err = s.of.Do(ctx, step, in)
	}
	return outputs, err
}

// NoEffect is embedded in steps that change nothing. Such a step is done when its Prove says so.
type NoEffect struct{}

// Do implements [Step].
func (NoEffect) Do(context.Context, StepContext) (json.RawMessage, error) { return nil, nil }
