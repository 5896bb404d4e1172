package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// fleet is nodes on which something is to be set.
type fleet struct {
	mu    sync.Mutex
	set   map[string]bool
	acted []string
	most  int
	now   int
	// off are nodes that cannot be reached for now, hangs those whose work never ends,
	// fails what the work on a node meets.
	off   map[string]bool
	hangs map[string]bool
	fails map[string]error
}

func newFleet() *fleet {
	return &fleet{set: map[string]bool{}, off: map[string]bool{}, hangs: map[string]bool{}, fails: map[string]error{}}
}

func (f *fleet) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fleet) step(bound int) actions.Items[string] {
	return actions.Items[string]{
		Unit: "nodes", Bound: bound, Timeout: 10 * time.Second,
		List: func(step actions.StepContext) (names []string, err error) { return names, step.Input(&names) },
		Name: func(node string) string { return node },
		Waits: func(_ context.Context, _ actions.StepContext, node string) (why string, err error) {
			f.with(func() {
				if f.off[node] {
					why = "it is not ready"
				}
			})
			return why, nil
		},
		ProveItem: func(_ context.Context, _ actions.StepContext, node string) (proof actions.Proof, err error) {
			f.with(func() { proof.Done = f.set[node] })
			return proof, nil
		},
		DoItem: f.act,
	}
}

func (f *fleet) act(ctx context.Context, _ actions.StepContext, node string) (json.RawMessage, error) {
	var hangs bool
	var err error
	f.with(func() {
		f.acted = append(f.acted, node)
		f.now++
		f.most = max(f.most, f.now)
		hangs, err = f.hangs[node], f.fails[node]
	})
	defer f.with(func() { f.now-- })
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	f.with(func() { f.set[node] = true })
	return json.RawMessage(`{"on":"` + node + `"}`), nil
}

func (f *fleet) times(node string) (n int) {
	f.with(func() {
		for _, acted := range f.acted {
			if acted == node {
				n++
			}
		}
	})
	return n
}

// onFleet runs an action of one step over so many nodes.
func (w *world) onFleet(step actions.Step, nodes int) actions.Config {
	w.T.Helper()
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("n%02d", i+1)
	}
	input, err := json.Marshal(names)
	if err != nil {
		w.T.Fatal(err)
	}
	kind := (&script{steps: []journal.PlannedStep{{
		ID: "set", Does: "act", Input: input, Irreversible: true, MayWaitFor: actions.HoldItems, Timeout: journal.Duration(10 * time.Minute),
	}}}).definition()
	kind.Steps = map[string]actions.StepDef{"act": {Step: step, SlowProof: true}}
	return w.Config([]actions.Definition{kind})
}

func (w *world) outcomes() (names []string) {
	w.T.Helper()
	for _, event := range w.Events() {
		payload, err := event.Decode()
		if err != nil {
			w.T.Fatal(err)
		}
		done, ok := payload.(*journal.StepDone)
		if !ok {
			continue
		}
		var outcomes actions.Outcomes
		if err := json.Unmarshal(done.Outputs, &outcomes); err != nil {
			w.T.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(outcomes.Items)) {
			names = append(names, fmt.Sprintf("%s %s %t", name, outcomes.Items[name].Outputs, outcomes.Items[name].AlreadyDone))
		}
	}
	return names
}

func TestManyItemsAreDoneSideBySideWithinTheBound(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.set["n02"] = true
		w.requestTest()
		took := w.Start(w.onFleet(f.step(3), 10)).End()
		if took > 4*time.Second || f.most != 3 {
			t.Errorf("it took %s with %d at once, want 3 s and 3", took, f.most)
		}
		w.WantStory("requested", "planned 1", "started set #1", "done set #1", "ended done")
		got := w.outcomes()
		if len(got) != 10 || got[0] != `n01 {"on":"n01"} false` || got[1] != "n02  true" {
			t.Errorf("outcomes are %q", got)
		}
	})
}

func TestOneItemThatHangsOrFailsHoldsUpNoOtherAndIsTriedAgainAlone(t *testing.T) {
	tests := map[string]func(f *fleet, on bool){
		"hangs": func(f *fleet, on bool) { f.hangs["n03"] = on },
		"fails": func(f *fleet, on bool) {
			f.fails["n03"] = nil
			if on {
				f.fails["n03"] = errors.New("disk full")
			}
		},
	}
	for name, turn := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				f := newFleet()
				turn(f, true)
				w.requestTest()
				r := w.Start(w.onFleet(f.step(2), 6))
				w.Pass(5 * time.Second)
				if len(f.set) != 5 {
					t.Errorf("after 5 s %d of 6 are done, want all but one", len(f.set))
				}
				w.Pass(20 * time.Second)
				if failed := w.Count("failed set"); failed == 0 {
					t.Error("the attempt has not failed")
				}
				if why := w.Record().Steps["set"].LastError; !strings.HasPrefix(why, "1 of 6 nodes are not done: n03: ") {
					t.Errorf("the error is %q", why)
				}
				f.with(func() { turn(f, false) })
				r.End()
				if got := w.outcomes(); len(got) != 6 || got[0] != `n01 {"on":"n01"} false` || got[2] != `n03 {"on":"n03"} false` {
					t.Errorf("outcomes are %q", got)
				}
				if f.times("n01") != 1 || f.times("n03") < 2 {
					t.Errorf("n01 was done %d times, n03 %d times", f.times("n01"), f.times("n03"))
				}
			})
		})
	}
}

func TestWhatIsLeftAndHasToWaitHoldsTheStepAndIsFinishedWhenItCanBe(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.off["n02"] = true
		w.requestTest()
		r := w.Start(w.onFleet(f.step(0), 3))
		w.Pass(72 * time.Hour)
		w.WantStory("requested", "planned 1", "started set #1", "failed set #1", `held "set" by Items`)
		record := w.Record()
		hold, deferred := record.Deferred()
		if !deferred || hold.Reason != "1 of 3 nodes are not done: n02 waits: it is not ready" {
			t.Errorf("it waits for %+v, deferred %t: others wait for it", hold, deferred)
		}
		if failures := record.Steps["set"].Failures; failures != 0 {
			t.Errorf("waiting counts as %d failures", failures)
		}
		f.with(func() { f.off["n02"] = false })
		r.Inbox.Recheck()
		if took := r.End(); took > 2*time.Second {
			t.Errorf("it was finished after %s, want at once", took)
		}
		w.WantStory("requested", "planned 1", "started set #1", "failed set #1", `held "set" by Items`,
			`released "set" by Items`, "started set #2", "done set #2", "ended done")
		if f.times("n01") != 1 || f.times("n02") != 1 {
			t.Errorf("n01 was done %d times, n02 %d times", f.times("n01"), f.times("n02"))
		}
	})
}

func TestAWaitOutlivesARestartAndARetryLooksAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.off["n02"] = true
		w.requestTest()
		cfg := w.onFleet(f.step(0), 3)
		r := w.Start(cfg)
		w.Pass(time.Hour)
		r.Halt()
		r = w.Start(cfg)
		w.Pass(time.Hour)
		w.WantStory("requested", "planned 1", "started set #1", "failed set #1", `held "set" by Items`)
		f.with(func() { f.off["n02"] = false })
		w.Retry(r)
		if took := r.End(); took > 2*time.Second {
			t.Errorf("it was finished %s after the retry, want at once", took)
		}
	})
}

func TestAKillAmongManyItemsRepeatsNoneThatIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		w.requestTest()
		cfg := w.onFleet(f.step(2), 8)
		cfg.Grace = time.Nanosecond
		r := w.Start(cfg)
		w.Pass(2500 * time.Millisecond)
		r.Halt()
		done := len(f.set)
		w.Start(cfg).End()
		if done != 4 || len(f.set) != 8 || f.times("n01") != 1 {
			t.Errorf("%d were done before, %d after, n01 %d times", done, len(f.set), f.times("n01"))
		}
	})
}

func TestAnItemThatPanicsFailsAloneAndTwoOfOneNameAreAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		step := f.step(0)
		act := step.DoItem
		step.DoItem = func(ctx context.Context, c actions.StepContext, node string) (json.RawMessage, error) {
			if node == "n01" {
				panic("no such node")
			}
			return act(ctx, c, node)
		}
		w.requestTest()
		r := w.Start(w.onFleet(step, 3))
		w.Pass(10 * time.Second)
		if why := w.Record().Steps["set"].LastError; !strings.Contains(why, "n01: ") || strings.Contains(why, "n02") {
			t.Errorf("the error is %q", why)
		}
		r.Halt()
	})
	step := newFleet().step(0)
	step.List = func(actions.StepContext) ([]string, error) { return []string{"a", "a"}, nil }
	if _, err := step.Prove(t.Context(), actions.StepContext{Log: slog.New(slog.DiscardHandler), Planned: journal.PlannedStep{ID: "set"}}); err == nil {
		t.Error("two items of one name are one")
	}
}

func TestAStepOverItemsReportsHowFarItHasCome(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var got []int64
		cfg := w.onFleet(newFleet().step(1), 2)
		cfg.Watcher = func(_, _ string, p actions.Progress) { got = append(got, p.Done) }
		w.requestTest()
		w.Start(cfg).End()
		if diff := cmp.Diff([]int64{1, 2}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnAttemptThatMustWaitAfterALookThatSawSomethingToDoGoesInNoCircle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		step, asked := f.step(0), 0
		step.Waits = func(_ context.Context, _ actions.StepContext, node string) (why string, err error) {
			f.with(func() {
				if asked++; node == "n02" && asked%2 == 1 {
					why = "it is not ready"
				}
			})
			return why, nil
		}
		f.set["n01"] = true
		w.requestTest()
		r := w.Start(w.onFleet(step, 2))
		w.Pass(time.Hour)
		if started := w.Count("started set"); started < 10 || started > 200 {
			t.Errorf("it was started %d times within an hour, want now and then", started)
		}
		r.Halt()
	})
}

func TestALookAtManyItemsHasTheTimeOfTheStep(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.off["n02"] = true
		step := f.step(10)
		look := step.ProveItem
		step.ProveItem = func(ctx context.Context, c actions.StepContext, node string) (actions.Proof, error) {
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
				return actions.Proof{}, ctx.Err()
			}
			return look(ctx, c, node)
		}
		w.requestTest()
		r := w.Start(w.onFleet(step, 99))
		w.Pass(24 * time.Hour)
		w.WantStory("requested", "planned 1", "started set #1", "failed set #1", `held "set" by Items`)
		r.Halt()
	})
}
