package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// Items is a [Step] over many items, which it works on in parallel. Each item has its own outcome. An item that fails is
// tried again alone, because the others prove that they are done; but only after all items were tried, so Timeout also
// bounds how long it waits for the slowest one. An item that has to wait, for example for a node that is off, is finished
// when that is possible. While all remaining items wait, the step is held under [HoldItems] and takes no domains.
//
// The items come from the plan, so a restart does not forget one.
type Items[I any] struct {
	// Unit names the items in messages, in the plural.
	Unit string
	// List reads the items from the step's input or outputs. It makes no calls.
	List func(step StepContext) ([]I, error)
	// Name identifies an item, in messages and in the outcomes.
	Name func(item I) string
	// Waits returns why the step can do nothing about an item for now, or "". It may be nil.
	Waits func(ctx context.Context, step StepContext, item I) (why string, err error)
	// Look and Act correspond to Prove and Do of a [Step], for one item.
	Look func(ctx context.Context, step StepContext, item I) (Proof, error)
	Act  func(ctx context.Context, step StepContext, item I) (outputs json.RawMessage, err error)
	// Bound is how many items are worked on in parallel; 0 means 10.
	Bound int
	// Timeout bounds the work on one item with its verification; 0 means a minute. The planned step's timeout bounds an
	// attempt at all items.
	Timeout time.Duration
}

// HoldItems is the hold of a step whose remaining items all have to wait.
const HoldItems = "Items"

// Outcomes are the outputs of a step over items: the outcome of each item, by name.
type Outcomes struct {
	Items map[string]Outcome `json:"items"`
}

// Outcome is the outcome of one item.
type Outcome struct {
	// Outputs are those of Act or, if it returned none, of Look.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is set when the item was done before the attempt.
	AlreadyDone bool `json:"already_done,omitempty"`
}

// itemResult is the state of one item: done if neither waits nor err is set.
type itemResult struct {
	Outcome
	waits string
	err   error
}

var errNotYet = errors.New(noEffect)

// Prove implements [Step]: the step is done when every item is.
func (s Items[I]) Prove(ctx context.Context, step StepContext) (Proof, error) {
	results, err := s.each(ctx, step, s.look, func(Progress) {})
	if err != nil {
		return Proof{}, err
	}
	left, waits := s.left(results)
	if left != "" {
		return Proof{Missing: left, Waits: waits}, nil
	}
	outputs, err := encodeOutcomes(step, results)
	return Proof{Done: true, Outputs: outputs}, err
}

// Do implements [Step]. Its error is an [UnfinishedError].
func (s Items[I]) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	results, err := s.each(ctx, step, s.finish, step.Report)
	if err != nil {
		return nil, err
	}
	outputs, err := encodeOutcomes(step, results)
	if err != nil {
		return nil, err
	}
	if left, waits := s.left(results); left != "" {
		return nil, &UnfinishedError{Left: left, Waits: waits, Outputs: outputs}
	}
	return outputs, nil
}

// UnfinishedError is the error of a step that is not done yet.
type UnfinishedError struct {
	// Left describes the items that are not done, and why.
	Left string
	// Waits is set if all of them have to wait. The attempt then does not count as a failure.
	Waits bool
	// Again names an earlier step whose result is no longer valid: EKCO repeats it before this one continues.
	Again string
	// Outputs are those of the part that is done. They are kept with the step.
	Outputs json.RawMessage
}

// Error implements error.
func (e *UnfinishedError) Error() string { return e.Left }

// each works on all items, and reports the progress.
func (s Items[I]) each(
	ctx context.Context, step StepContext, work func(context.Context, StepContext, I) itemResult, report func(Progress),
) (map[string]itemResult, error) {
	items, err := s.List(step)
	if err != nil {
		return nil, fmt.Errorf("list the %s of step %s: %w", s.Unit, step.Planned.ID, err)
	}
	var mu sync.Mutex
	results, done := make(map[string]itemResult, len(items)), int64(0)
	parallel.Each(cmp.Or(s.Bound, 10), items, func(item I) {
		result := s.inTime(ctx, step, item, work)
		mu.Lock()
		defer mu.Unlock()
		results[s.Name(item)] = result
		if result.waits == "" && result.err == nil {
			done++
			report(Progress{Done: done, Total: int64(len(items)), Unit: s.Unit})
		}
	})
	if len(results) < len(items) {
		return nil, fmt.Errorf("step %s has %d %s but only %d different names", step.Planned.ID, len(items), s.Unit, len(results))
	}
	return results, nil
}

// inTime limits the time of the work on one item. If it panics, only that item fails.
func (s Items[I]) inTime(ctx context.Context, step StepContext, item I, work func(context.Context, StepContext, I) itemResult) (result itemResult) {
	if ctx.Err() != nil {
		return itemResult{err: ctx.Err()}
	}
	timeout := cmp.Or(s.Timeout, time.Minute)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if result.err != nil {
			result.err = timedOut(ctx, timeout, result.err)
		}
	}()
	defer Catch(step.Log.With("item", s.Name(item)), "the work on an item", &result.err)
	return work(ctx, step, item)
}

// look returns the state of an item.
func (s Items[I]) look(ctx context.Context, step StepContext, item I) itemResult {
	proof, err := s.Look(ctx, step, item)
	switch {
	case err != nil:
		return itemResult{err: fmt.Errorf("verify the effect: %w", err)}
	case proof.Done:
		return itemResult{Outcome: Outcome{Outputs: proof.Outputs, AlreadyDone: true}}
	}
	if s.Waits != nil {
		why, err := s.Waits(ctx, step, item)
		if why != "" || err != nil {
			return itemResult{waits: why, err: err}
		}
	}
	return itemResult{err: fmt.Errorf("%s: %w", cmp.Or(proof.Missing, "not done"), errNotYet)}
}

// finish completes an item, unless it has to wait.
func (s Items[I]) finish(ctx context.Context, step StepContext, item I) itemResult {
	seen := s.look(ctx, step, item)
	if !errors.Is(seen.err, errNotYet) {
		return seen
	}
	outputs, err := s.Act(ctx, step, item)
	if err != nil {
		return itemResult{err: err}
	}
	proof, err := Await(ctx, neverWoken, func(ctx context.Context) (Proof, error) { return s.Look(ctx, step, item) })
	if err != nil {
		return itemResult{err: err}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return itemResult{Outcome: Outcome{Outputs: outputs}}
}

// neverWoken is for effects without a [StepDef.WakeUp]: EKCO checks them every few seconds.
func neverWoken() <-chan struct{} { return nil }

// maxNamed is how many items a message names.
const maxNamed = 5

// left names the items that are not done, or returns "", and reports whether all of them have to wait.
func (s Items[I]) left(results map[string]itemResult) (left string, waits bool) {
	var reasons []string
	waits = true
	for _, name := range slices.Sorted(maps.Keys(results)) {
		switch result := results[name]; {
		case result.err != nil:
			waits = false
			reasons = append(reasons, fmt.Sprintf("%s: %v", name, result.err))
		case result.waits != "":
			reasons = append(reasons, fmt.Sprintf("%s waits: %s", name, result.waits))
		}
	}
	count := len(reasons)
	if count == 0 {
		return "", false
	}
	if count > maxNamed {
		reasons = append(reasons[:maxNamed], fmt.Sprintf("and %d more", count-maxNamed))
	}
	return fmt.Sprintf("%d of %d %s are not done: %s", count, len(results), s.Unit, strings.Join(reasons, "; ")), waits
}

// encodeOutcomes returns the outcomes of the items that are done. An item that an earlier attempt did keeps that attempt's
// outcome.
func encodeOutcomes(step StepContext, results map[string]itemResult) (json.RawMessage, error) {
	var former Outcomes
	if _, err := step.Output(step.Planned.ID, &former); err != nil {
		return nil, err
	}
	outcomes := Outcomes{Items: make(map[string]Outcome, len(results))}
	for name, result := range results {
		before, known := former.Items[name]
		switch {
		case result.waits != "" || result.err != nil:
		case known && result.AlreadyDone:
			outcomes.Items[name] = before
		default:
			outcomes.Items[name] = result.Outcome
		}
	}
	return json.Marshal(outcomes)
}
