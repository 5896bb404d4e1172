package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// errDryRun is returned instead of an effect in a dry run. No caller should get that far: this is the last safeguard.
var errDryRun = errors.New("a dry run changes nothing")

// attemptResult is how one attempt of a step went.
type attemptResult struct {
	outputs json.RawMessage
	err     error
}

// attempt causes a step's effect and waits until the effect is verified, within the plan's timeout. The effect is
// interrupted only when work ends. Waiting for the verification changes nothing, so it also ends with waiting. In a dry
// run attempt causes nothing and returns [errDryRun].
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

// attemptWithin is an attempt without its cleanup.
func attemptWithin(work, waiting context.Context, timeout time.Duration, code StepDef, step StepContext) (result attemptResult) {
	defer Catch(step.Log, "an attempt", &result.err)
	work, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	outputs, err := code.Do(work, step)
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	proof, err := waitForProof(work, waiting, code, step.leaving(outputs))
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return attemptResult{outputs: outputs}
}

// cleanUpTime bounds [StepDef.CleanUp].
const cleanUpTime = 5 * time.Second

// cleanUp calls the step's [StepDef.CleanUp]. A panic there is logged and does not change the attempt's result.
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

// waitForProof waits for the proof until either context ends. If waiting has ended before, it verifies the effect once, so
// that the next start need not repeat it.
func waitForProof(work, waiting context.Context, code StepDef, step StepContext) (Proof, error) {
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

// defaultTimeout is for steps to which the plan gives no timeout.
const defaultTimeout = time.Minute

// The pauses between two checks for a proof grow from firstLook to lastLook: most effects are visible at once.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

func awaitProof(ctx context.Context, code StepDef, step StepContext) (Proof, error) {
	wakeUp := neverWoken
	if code.WakeUp != nil {
		wakeUp = func() <-chan struct{} { return code.WakeUp(step) }
	}
	return Await(ctx, wakeUp, func(ctx context.Context) (Proof, error) {
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

// Await calls prove until the proof is done or ctx ends. If the channel from wakeUp is closed, it calls prove again at
// once. It returns an error if the proof is Lost, or still missing when ctx ends.
func Await(ctx context.Context, wakeUp func() <-chan struct{}, prove func(context.Context) (Proof, error)) (Proof, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		woken := wakeUp()
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
		case <-woken:
			pause = firstLook
		case <-time.After(pause):
		}
	}
}

// noEffect is the reason if a step names none.
const noEffect = "its effect is not visible"

// unseenError is the error of an attempt whose effect was not visible in time.
type unseenError struct {
	missing string
	worse   bool
	err     error
}

// Error leaves out that the time is over: timedOut adds that, with the limit.
func (e *unseenError) Error() string {
	missing := cmp.Or(e.missing, noEffect)
	if errors.Is(e.err, context.DeadlineExceeded) {
		return missing
	}
	return missing + ": " + e.err.Error()
}

func (e *unseenError) Unwrap() error { return e.err }

// lostError is the error of an attempt whose effect will not come any more.
type lostError struct {
	missing string
	worse   bool
}

// Error implements error.
func (e *lostError) Error() string { return e.missing }

// timedOut adds the timeout to the error if the attempt's own deadline caused it.
func timedOut(ctx context.Context, timeout time.Duration, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no success within %s: %w", timeout, err)
	}
	return err
}
