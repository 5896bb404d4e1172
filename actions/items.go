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

// Items is a [Step] that works on many items in parallel. Each item has its own outcome. If an item fails, a later
// attempt repeats only that item, because the others are proved done. The next attempt starts after all items were
// tried, so Timeout also limits the wait for the slowest item. An item that has to wait, for example for a node that is
// off, is finished later. While all remaining items wait, EKCO holds the step under [HoldItems], and the step locks no
// domains.
//
// The items come from the plan, so EKCO still knows them after a restart.
type Items[I any] struct {
	// Unit names the items in messages, in the plural.
	Unit string
	// List reads the items from the step's input or outputs. It makes no calls.
	List func(step StepContext) ([]I, error)
	// Name identifies an item, in messages and in the outcomes.
	Name func(item I) string
	// Waits returns the reason why the step can do nothing about an item now, or "". It may be nil.
	Waits func(ctx context.Context, step StepContext, item I) (why string, err error)
	// ProveItem and DoItem are the Prove and Do of a [Step], for one item.
	ProveItem func(ctx context.Context, step StepContext, item I) (Proof, error)
	DoItem    func(ctx context.Context, step StepContext, item I) (outputs json.RawMessage, err error)
	// Bound is the maximum number of items in work at the same time; 0 means 10.
	Bound int
	// Timeout limits the work on one item including its verification; 0 means one minute. The timeout of the planned
	// step limits an attempt at all items.
	Timeout time.Duration
}

// HoldItems is the hold of a step whose remaining items must all wait.
const HoldItems = "Items"

// Outcomes are the outputs of a step over items: the outcome of each item, by name.
type Outcomes struct {
	Items map[string]Outcome `json:"items"`
}

// Outcome is the outcome of one item.
type Outcome struct {
	// Outputs come from DoItem or, if DoItem returned none, from ProveItem.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is true if the item was done before the attempt.
	AlreadyDone bool `json:"already_done,omitempty"`
}

// itemResult is the state of one item. The item is done if neither waits nor err is set.
type itemResult struct {
	Outcome
	waits string
	err   error
}

var errNotYet = errors.New(defaultMissing)

// Prove implements [Step]: the step is done when every item is.
func (s Items[I]) Prove(ctx context.Context, step StepContext) (Proof, error) {
	results, err := s.forEach(ctx, step, s.verifyItem, func(Progress) {})
	if err != nil {
		return Proof{}, err
	}
	left, waits := s.leftText(results)
	if left != "" {
		return Proof{Missing: left, Waits: waits}, nil
	}
	outputs, err := encodeOutcomes(step, results)
	return Proof{Done: true, Outputs: outputs}, err
}

// Do implements [Step]. Its error is an [UnfinishedError].
func (s Items[I]) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	results, err := s.forEach(ctx, step, s.finishItem, step.Report)
	if err != nil {
		return nil, err
	}
	outputs, err := encodeOutcomes(step, results)
	if err != nil {
		return nil, err
	}
	if left, waits := s.leftText(results); left != "" {
		return nil, &UnfinishedError{Left: left, Waits: waits, Outputs: outputs}
	}
	return outputs, nil
}

// UnfinishedError is the error of a step that is not done yet.
type UnfinishedError struct {
	// Left describes the remaining items and the reasons.
	Left string
	// Waits is true if all remaining items must wait. The attempt then does not count as a failure.
	Waits bool
	// RepeatStep names an earlier step whose result is no longer valid: EKCO repeats it before this one continues.
	RepeatStep string
	// Outputs describe the finished part. EKCO records them with the step.
	Outputs json.RawMessage
}

// Error implements error.
func (e *UnfinishedError) Error() string { return e.Left }

// forEach works on all items, and reports the progress.
func (s Items[I]) forEach(
	ctx context.Context, step StepContext, work func(context.Context, StepContext, I) itemResult, report func(Progress),
) (map[string]itemResult, error) {
	items, err := s.List(step)
	if err != nil {
		return nil, fmt.Errorf("list the %s of step %s: %w", s.Unit, step.Planned.ID, err)
	}
	var mu sync.Mutex
	results, done := make(map[string]itemResult, len(items)), int64(0)
	parallel.Each(cmp.Or(s.Bound, 10), items, func(item I) {
		result := s.withTimeout(ctx, step, item, work)
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

// withTimeout limits the time of the work on one item. A panic fails only that item.
func (s Items[I]) withTimeout(ctx context.Context, step StepContext, item I, work func(context.Context, StepContext, I) itemResult) (result itemResult) {
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

// verifyItem returns the state of an item.
func (s Items[I]) verifyItem(ctx context.Context, step StepContext, item I) itemResult {
	proof, err := s.ProveItem(ctx, step, item)
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

// finishItem completes an item, unless it has to wait.
func (s Items[I]) finishItem(ctx context.Context, step StepContext, item I) itemResult {
	seen := s.verifyItem(ctx, step, item)
	if !errors.Is(seen.err, errNotYet) {
		return seen
	}
	outputs, err := s.DoItem(ctx, step, item)
	if err != nil {
		return itemResult{err: err}
	}
	proof, err := Await(ctx, noWakeUp, func(ctx context.Context) (Proof, error) { return s.ProveItem(ctx, step, item) })
	if err != nil {
		return itemResult{err: err}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return itemResult{Outcome: Outcome{Outputs: outputs}}
}

// noWakeUp returns no channel, for effects without a [StepDef.WakeUp]: EKCO checks these again after at most 2 seconds.
func noWakeUp() <-chan struct{} { return nil }

// maxNamed is how many items a message names.
const maxNamed = 5

// leftText names the items that are not done, and reports whether all of them have to wait.
func (s Items[I]) leftText(results map[string]itemResult) (left string, waits bool) {
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

// encodeOutcomes returns the outcomes of the items that are done. If an earlier attempt finished an item, it keeps the
// outcome of that attempt.
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
