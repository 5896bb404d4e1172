package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// errDryRun is returned instead of an effect in a dry run. It is the last safeguard: callers must not start an attempt
// in a dry run.
var errDryRun = errors.New("a dry run changes nothing")

type attemptResult struct {
	outputs json.RawMessage
	err     error
}

// attempt causes a step's effect and waits until the effect is verified, within the timeout of the plan. The end of
// work interrupts the effect. The end of waiting only ends the wait for verification, because that wait changes
// nothing. In a dry run attempt causes no effect and returns [errDryRun].
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

// attemptWithin makes an attempt without [StepDef.CleanUp].
func attemptWithin(work, waiting context.Context, timeout time.Duration, code StepDef, step StepContext) (result attemptResult) {
	defer Catch(step.Log, "an attempt", &result.err)
	work, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	outputs, err := code.Do(work, step)
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	proof, err := waitForProof(work, waiting, code, step.withOutputs(outputs))
	if err != nil {
		return attemptResult{err: timedOut(work, timeout, err)}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return attemptResult{outputs: outputs}
}

// cleanUpTime limits one call of [StepDef.CleanUp].
const cleanUpTime = 5 * time.Second

// cleanUp calls the step's [StepDef.CleanUp]. It logs a panic, which does not change the attempt's result.
func cleanUp(work context.Context, code StepDef, step StepContext, failed *error) {
	if code.CleanUp == nil {
		return
	}
	var panicked error
	defer Catch(step.Log, "the cleanup after an attempt", &panicked)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), cleanUpTime)
	defer cancel()
	code.CleanUp(ctx, step.afterAttempt(), *failed)
}

// waitForProof waits for the proof until one of the contexts ends. If waiting has already ended, it checks the effect
// once, so that the next start of EKCO need not repeat the effect.
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

// defaultTimeout limits steps for which the plan has no timeout.
const defaultTimeout = time.Minute

// The pause between two checks for a proof grows from firstProofInterval to maxProofInterval. It starts short because
// most effects are visible at once.
const (
	firstProofInterval = 100 * time.Millisecond
	maxProofInterval   = 2 * time.Second
)

func awaitProof(ctx context.Context, code StepDef, step StepContext) (Proof, error) {
	wakeUp := noWakeUp
	if code.WakeUp != nil {
		wakeUp = func() <-chan struct{} { return code.WakeUp(step) }
	}
	return Await(ctx, wakeUp, func(ctx context.Context) (Proof, error) {
		proof, err := code.Prove(ctx, step)
		switch {
		case err != nil || proof.Done:
		case proof.NeedsOthers:
			step.WaitsForOthers(proof.Missing)
		default:
			step.ReportMissing(proof.Missing)
		}
		return proof, err
	})
}

// Await calls prove until the proof is done or ctx ends. If the channel from wakeUp is closed, it calls prove again at
// once. It returns an error if the proof is Lost, or still missing when ctx ends.
func Await(ctx context.Context, wakeUp func() <-chan struct{}, prove func(context.Context) (Proof, error)) (Proof, error) {
	for pause := firstProofInterval; ; pause = min(2*pause, maxProofInterval) {
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
			pause = firstProofInterval
		case <-time.After(pause):
		}
	}
}

// defaultMissing is the reason in messages if the proof has no Missing text.
const defaultMissing = "its effect is not visible"

// unseenError is the error of an attempt whose effect was not visible in time.
type unseenError struct {
	missing string
	worse   bool
	err     error
}

// Error does not mention the timeout; timedOut adds the timeout to the message.
func (e *unseenError) Error() string {
	missing := cmp.Or(e.missing, defaultMissing)
	if errors.Is(e.err, context.DeadlineExceeded) {
		return missing
	}
	return missing + ": " + e.err.Error()
}

func (e *unseenError) Unwrap() error { return e.err }

// lostError is the error of an attempt whose effect can no longer happen.
type lostError struct {
	missing string
	worse   bool
}

func (e *lostError) Error() string { return e.missing }

// NoSuccessWithin is the beginning of the error of an attempt that ran out of time.
const NoSuccessWithin = "no success within "

// timedOut adds the timeout to the error if the attempt's own deadline caused it.
func timedOut(ctx context.Context, timeout time.Duration, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf(NoSuccessWithin+"%s: %w", timeout, err)
	}
	return err
}
