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

// Items is a [Step] over many items, each with an outcome of its own. They are worked
// on side by side. One that takes long, or fails, holds up no other, and is tried again
// alone, since the others prove themselves done; but not before all were tried, so that
// Timeout also bounds how long one that failed waits for another. One that has to wait,
// for a node that is off, say, is finished when it can be: while all that is left waits,
// the step is held under [HoldItems] and takes no domains.
//
// The items are those of the plan, so that a restart does not forget one.
type Items[I any] struct {
	// Unit is what people call the items, in the plural.
	Unit string
	// List reads the items from the step's input or outputs. It asks nobody.
	List func(step StepContext) ([]I, error)
	// Name tells an item from the others, for people and in the outcomes.
	Name func(item I) string
	// Waits says why nothing can be done about an item for now, or "". It may be nil.
	Waits func(ctx context.Context, step StepContext, item I) (why string, err error)
	// Look and Act are what Prove and Do are to a [Step], for one item.
	Look func(ctx context.Context, step StepContext, item I) (Proof, error)
	Act  func(ctx context.Context, step StepContext, item I) (outputs json.RawMessage, err error)
	// Bound is how many are worked on at once; 0 means 10.
	Bound int
	// Timeout bounds the work on one item, until its proof; 0 means a minute. That of
	// the planned step bounds an attempt at all of them.
	Timeout time.Duration
}

// HoldItems is the hold of a step of which all that is left has to wait.
const HoldItems = "Items"

// Outcomes are the outputs of a step over items: what became of each, by name.
type Outcomes struct {
	Items map[string]Outcome `json:"items"`
}

// Outcome is what became of one item.
type Outcome struct {
	// Outputs are what Act returned, or else what Look did.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// AlreadyDone is set when there was nothing to do about it.
	AlreadyDone bool `json:"already_done,omitempty"`
}

// itemResult is how it stands with one item: done if neither is set.
type itemResult struct {
	Outcome
	waits string
	err   error
}

var errNotYet = errors.New(noEffect)

// Prove implements [Step]: it is done when every item is.
func (s Items[I]) Prove(ctx context.Context, step StepContext) (Proof, error) {
	results, err := s.each(ctx, step, s.look, func(Progress) {})
	if err != nil {
		return Proof{}, err
	}
	left, waits := s.left(results)
	if left != "" {
		return Proof{Missing: left, Waits: waits}, nil
	}
	outputs, err := outcomesOf(step, results)
	return Proof{Done: true, Outputs: outputs}, err
}

// Do implements [Step]. Its error is an [UnfinishedError].
func (s Items[I]) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	results, err := s.each(ctx, step, s.finish, step.Report)
	if err != nil {
		return nil, err
	}
	outputs, err := outcomesOf(step, results)
	if err != nil {
		return nil, err
	}
	if left, waits := s.left(results); left != "" {
		return nil, &UnfinishedError{Left: left, Waits: waits, Outputs: outputs}
	}
	return outputs, nil
}

// UnfinishedError says what a step has left to do.
type UnfinishedError struct {
	// Left says, for people, what is left, and why.
	Left string
	// Waits is set when all of that has to wait: the attempt does not count against the
	// budget of retries then.
	Waits bool
	// Again names the step whose result does not hold any more: it is done once more, and this one
	// has to wait for it.
	Again string
	// Outputs are those of the part that is done. They are kept with the step.
	Outputs json.RawMessage
}

// Error implements error.
func (e *UnfinishedError) Error() string { return e.Left }

// each works on all items, and reports how far it has come.
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

// inTime bounds the work on one item. One that panics fails alone.
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

// look sees how it stands with an item.
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

// finish does what is to be done about an item, unless it has to wait.
func (s Items[I]) finish(ctx context.Context, step StepContext, item I) itemResult {
	seen := s.look(ctx, step, item)
	if !errors.Is(seen.err, errNotYet) {
		return seen
	}
	outputs, err := s.Act(ctx, step, item)
	if err != nil {
		return itemResult{err: err}
	}
	proof, err := Await(ctx, unheeded, func(ctx context.Context) (Proof, error) { return s.Look(ctx, step, item) })
	if err != nil {
		return itemResult{err: err}
	}
	if len(outputs) == 0 {
		outputs = proof.Outputs
	}
	return itemResult{Outcome: Outcome{Outputs: outputs}}
}

// unheeded is for what nobody notices: an item is looked at again every few seconds.
func unheeded() <-chan struct{} { return nil }

// named is how many items a sentence names.
const named = 5

// left says which items are not done, or "", and whether all of those have to wait.
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
	if count > named {
		reasons = append(reasons[:named], fmt.Sprintf("and %d more", count-named))
	}
	return fmt.Sprintf("%d of %d %s are not done: %s", count, len(results), s.Unit, strings.Join(reasons, "; ")), waits
}

// outcomesOf returns the outcomes of what is done. What an earlier attempt did keeps that
// attempt's outcome: this one only found it done.
func outcomesOf(step StepContext, results map[string]itemResult) (json.RawMessage, error) {
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
