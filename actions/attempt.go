package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// errDryRun is what an effect meets in a dry run. Nothing should get that far; it
// is the last line, whatever the effect reaches.
var errDryRun = errors.New("a dry run changes nothing")

// attemptResult is how one attempt of a step went.
type attemptResult struct {
	outputs json.RawMessage
	err     error
}

// attempt causes a step's effect and waits until its proof is observed, within
// the timeout that the plan gives it. The effect is cut short only when work
// ends. Waiting for the proof changes nothing, so that it also ends with waiting.
// In a dry run it causes nothing, and returns [errDryRun].
func attempt(work, waiting context.Context, code StepDef, step StepContext) (result attemptResult) {
	if step.Action.Request.DryRun {
		return attemptResult{err: fmt.Errorf("step %s of %s: %w", step.Planned.ID, step.Action.ID, errDryRun)}
	}
	timeout := time.Duration(step.Planned.Timeout)
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	defer cleanUp(work, code, step, &result.err)
	return attemptWithin(work, waiting, timeout, code, step)
}

// attemptWithin is an attempt without what is to be done about its end.
func attemptWithin(work, waiting context.Context, timeout time.Duration, code StepDef, step StepContext) (result attemptResult) {
	defer Catch(step.Log, "an attempt", &result.err)
	work, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	outputs, err := code.Do(work, step)
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	proof, err := proofOf(work, waiting, code, step.leaving(outputs))
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return attemptResult{outputs: outputs}
}

// cleanUpTime bounds what a step takes back at the end of an attempt.
const cleanUpTime = 5 * time.Second

// cleanUp lets a step take back what must not stay. A panic of its is logged, and changes
// nothing about how the attempt went.
func cleanUp(work context.Context, code StepDef, step StepContext, failed *error) {
	if code.CleanUp == nil {
		return
	}
	var panicked error
	defer Catch(step.Log, "the cleanup after an attempt", &panicked)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), cleanUpTime)
	defer cancel()
	code.CleanUp(ctx, step.over(), *failed)
}

// proofOf waits for the proof until either context ends. An effect that came to
// its end although waiting is over deserves one look: it saves the next start
// from repeating it.
func proofOf(work, waiting context.Context, code StepDef, step StepContext) (Proof, error) {
	if waiting.Err() != nil {
		proof, err := code.Prove(work, step)
		if err == nil && !proof.Done {
			err = fmt.Errorf("%s: %w", proof.Missing, waiting.Err())
		}
		return proof, err
	}
	proving, cancel := context.WithCancel(work)
	defer cancel()
	defer context.AfterFunc(waiting, cancel)()
	return awaitProof(proving, code, step)
}

// defaultTimeout is for plans that give a step none.
const defaultTimeout = time.Minute

// Between two looks for a proof: at first often, since most effects show at
// once, then less and less.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

func awaitProof(ctx context.Context, code StepDef, step StepContext) (Proof, error) {
	heed := unheeded
	if code.WakeUp != nil {
		heed = func() <-chan struct{} { return code.WakeUp(step) }
	}
	return Await(ctx, heed, func(ctx context.Context) (Proof, error) {
		proof, err := code.Prove(ctx, step)
		switch {
		case err != nil || proof.Done:
		case proof.Foreign:
			step.WaitsForOthers(proof.Missing)
		default:
			step.Lacks(proof.Missing)
		}
		return proof, err
	})
}

// Await looks until it sees the proof, or ctx ends. If the channel from heed is closed, it
// looks again at once. A proof that is Lost and one that is missing at the end are errors.
func Await(ctx context.Context, heed func() <-chan struct{}, prove func(context.Context) (Proof, error)) (Proof, error) {
	for rest := firstLook; ; rest = min(2*rest, lastLook) {
		again := heed()
		proof, err := prove(ctx)
		if err != nil {
			return Proof{}, fmt.Errorf("verify the effect: %w", err)
		}
		switch {
		case proof.Done:
			return proof, nil
		case proof.Lost:
			return Proof{}, &lostError{proof.Missing, proof.Worse}
		}
		select {
		case <-ctx.Done():
			return Proof{}, &unseenError{proof.Missing, proof.Worse, ctx.Err()}
		case <-again:
			rest = firstLook
		case <-time.After(rest):
		}
	}
}

// noEffect is the reason if a step names none.
const noEffect = "its effect is not visible"

// unseenError is an effect that was asked for and has not shown while it was waited for.
type unseenError struct {
	missing string
	worse   bool
	err     error
}

// Error leaves out that the time is over, which whoever set the limit says with its length.
func (e *unseenError) Error() string {
	missing := cmp.Or(e.missing, noEffect)
	if errors.Is(e.err, context.DeadlineExceeded) {
		return missing
	}
	return missing + ": " + e.err.Error()
}

func (e *unseenError) Unwrap() error { return e.err }

// lostError is an effect that will not come any more.
type lostError struct {
	missing string
	worse   bool
}

// Error implements error.
func (e *lostError) Error() string { return e.missing }

// timedOut says so in an error that came of the attempt's own deadline.
func timedOut(ctx context.Context, timeout time.Duration, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no success within %s: %w", timeout, err)
	}
	return err
}
