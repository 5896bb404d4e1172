package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// world is a journal in which a script runs.
type world struct{ *actionstest.World }

// inBubble runs a test with a fake clock, side by side with others.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	actionstest.InBubble(t, func(w *actionstest.World) { test(w.T, &world{w}) })
}

const testKind journal.ActionKind = "test"

// script is an action whose steps are told what to do.
type script struct {
	steps, undo []journal.PlannedStep
	// plan, do, and prove may be nil: then all goes well, and the proof is that
	// do was called.
	plan  func() error
	do    func(ctx context.Context, id string) error
	prove func(ctx context.Context, id string) (bool, error)

	mu     sync.Mutex
	called []string
	atOnce int
	most   int
}

func (k *script) makePlan(context.Context, journal.ActionRecord) (journal.Plan, error) {
	if k.plan != nil {
		if err := k.plan(); err != nil {
			return journal.Plan{}, err
		}
	}
	return journal.Plan{Steps: k.steps, Undo: k.undo}, nil
}

func (k *script) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	k.mu.Lock()
	k.called = append(k.called, step.Planned.ID)
	k.atOnce++
	k.most = max(k.most, k.atOnce)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.atOnce--
	}()
	if k.do != nil {
		return nil, k.do(ctx, step.Planned.ID)
	}
	return nil, nil
}

func (k *script) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	if k.prove != nil {
		done, err := k.prove(ctx, step.Planned.ID)
		return actions.Proof{Done: done, Missing: "the effect"}, err
	}
	return actions.Proof{Done: slices.Contains(k.calls(), step.Planned.ID)}, nil
}

func (k *script) calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.called)
}

func (k *script) definition() actions.Definition {
	return actions.Definition{
		Kind: testKind, AskedLast: []string{"NodeStillGone"},
		Plan: k.makePlan, Steps: map[string]actions.StepDef{"act": {Step: k}},
	}
}

func (k *script) kinds() []actions.Definition {
	return []actions.Definition{k.definition()}
}

func step(id string, after ...string) journal.PlannedStep {
	return journal.PlannedStep{ID: id, Does: "act", After: after, Timeout: journal.Duration(time.Minute)}
}

func guarded(id string, preflights ...string) journal.PlannedStep {
	s := step(id)
	s.Preflights = preflights
	return s
}

func (w *world) requestTest() { w.Request(testSubject, journal.ActionRequested{Kind: testKind}) }

var (
	testSubject = journal.NodeSubject("w1", "uid-w1")
	errBroken   = errors.New("it is broken")
)

// standing lists the rules of policy, which every kind of the tests obeys.
func standing() []string { return append([]string{actions.SafeMode}, actionstest.Rules()...) }
