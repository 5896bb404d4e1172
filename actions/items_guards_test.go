package actions_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestItemsWithoutBoundAndTimeoutAreDoneTenAtOnceForAMinuteEach(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.hangs["n01"] = true
		step := f.step(0)
		step.Timeout = 0
		w.requestTest()
		r := w.Start(w.onFleet(step, 12))
		w.Pass(59 * time.Second)
		if f.most != 10 || len(f.set) != 11 || w.Count("failed") != 0 {
			t.Errorf("%d were done at once, %d are done, failed %d times", f.most, len(f.set), w.Count("failed"))
		}
		w.Pass(2 * time.Second)
		if w.Count("failed") != 1 {
			t.Error("the one that hangs has not failed after a minute")
		}
		r.Halt()
	})
}

func TestOnlyItemsThatAreDoneCountAsProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.off["n01"], f.fails["n02"] = true, errors.New("disk full")
		var got []actions.Progress
		cfg := w.onFleet(f.step(1), 4)
		cfg.Watcher = func(_, _ string, p actions.Progress) { got = append(got, p) }
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(4 * time.Second)
		r.Halt()
		if want := (actions.Progress{Done: 2, Total: 4, Unit: "nodes"}); len(got) < 2 || slices.MaxFunc(got, moreDone) != want {
			t.Errorf("reported %+v, at most want %+v", got, want)
		}
	})
}

func moreDone(a, b actions.Progress) int { return cmp.Compare(a.Done, b.Done) }

func asked(names ...string) (actions.StepContext, func(actions.StepContext) ([]string, error)) {
	return actions.StepContext{Log: slog.New(slog.DiscardHandler), Planned: journal.PlannedStep{ID: "set"}},
		func(actions.StepContext) ([]string, error) { return names, nil }
}

func TestNoItemIsBegunOnceTheStepIsOver(t *testing.T) {
	f := newFleet()
	step := f.step(1)
	looked := 0
	step.ProveItem = func(context.Context, actions.StepContext, string) (actions.Proof, error) {
		looked++
		return actions.Proof{}, nil
	}
	over, end := context.WithCancel(t.Context())
	end()
	asking, list := asked("a", "b")
	step.List = list
	_, err := step.Do(over, asking)
	if err == nil || !strings.Contains(err.Error(), "a: context canceled; b: context canceled") || looked+len(f.acted) != 0 {
		t.Errorf("looked %d times, did %q: %v", looked, f.acted, err)
	}
}

func TestAnItemThatIsThereKeepsWhatALookReturnsAndNoneHasToWaitWhereNobodySaysWhen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f := newFleet()
		f.set["n01"] = true
		step := f.step(0)
		look := step.ProveItem
		step.Waits = nil
		step.ProveItem = func(ctx context.Context, c actions.StepContext, node string) (actions.Proof, error) {
			proof, err := look(ctx, c, node)
			proof.Outputs = json.RawMessage(`"seen"`)
			return proof, err
		}
		step.DoItem = func(ctx context.Context, c actions.StepContext, node string) (json.RawMessage, error) {
			if node == "n02" {
				_, err := f.act(ctx, c, node)
				return nil, err
			}
			return f.act(ctx, c, node)
		}
		w.requestTest()
		w.RunToEnd(w.onFleet(step, 3))
		if diff := gocmp.Diff([]string{`n01 "seen" true`, `n02 "seen" false`, `n03 {"on":"n03"} false`}, w.outcomes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnItemThatTakesTooLongSaysAfterWhichTime(t *testing.T) {
	f := newFleet()
	f.hangs["a"] = true
	step := f.step(1)
	asking, list := asked("a")
	step.List, step.Timeout = list, time.Millisecond
	if _, err := step.Do(t.Context(), asking); err == nil || !strings.Contains(err.Error(), "a: no success within 1ms: ") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsDoneAboutAnItemOfWhichItCannotBeToldWhetherItHasToWait(t *testing.T) {
	f := newFleet()
	step := f.step(1)
	asking, list := asked("a")
	step.List = list
	step.Waits = func(context.Context, actions.StepContext, string) (string, error) { return "", errBroken }
	if _, err := step.Do(t.Context(), asking); err == nil || !strings.Contains(err.Error(), errBroken.Error()) || len(f.acted) != 0 {
		t.Errorf("did %q: %v", f.acted, err)
	}
}

func TestAnItemIsDoneWhenItsEffectShows(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		f, shown := newFleet(), time.Now().Add(5*time.Second)
		step := f.step(1)
		look := step.ProveItem
		step.ProveItem = func(ctx context.Context, c actions.StepContext, node string) (actions.Proof, error) {
			proof, err := look(ctx, c, node)
			proof.Done = proof.Done && !time.Now().Before(shown)
			return proof, err
		}
		asking, list := asked("a")
		step.List = list
		if _, err := step.Do(t.Context(), asking); err != nil || time.Now().Before(shown) || f.times("a") != 1 {
			t.Errorf("it ended %s too early, after %d tries: %v", time.Until(shown), f.times("a"), err)
		}
	})
}

func TestAStepThatWaitsForItsItemsIsNotHeldByAPreflight(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f, paused := newFleet(), actionstest.NewPreflight(actions.Pass())
		f.off["n02"] = true
		w.requestTest()
		r := w.Start(actionstest.With(w.onFleet(f.step(0), 3), map[string]actions.Preflight{"Paused": paused}))
		w.Pass(time.Hour)
		paused.SetVerdict(actions.Hold("it is paused"))
		r.Inbox.Recheck()
		w.Pass(time.Second)
		if hold := w.Record().Holds["set"]; hold.Preflight != actions.HoldItems {
			t.Errorf("held by %+v", hold)
		}
		r.Halt()
	})
}

func TestAsManyItemsAsASentenceNamesAreNamed(t *testing.T) {
	for more, names := range map[string][]string{"": {"a", "b", "c", "d", "e"}, "; and 2 more": {"a", "b", "c", "d", "e", "f", "g"}} {
		f := newFleet()
		step := f.step(1)
		asking, list := asked(names...)
		step.List = list
		proof, err := step.Prove(t.Context(), asking)
		if _, named, _ := strings.Cut(proof.Missing, "; e: not done: its effect is not visible"); err != nil || named != more {
			t.Errorf("%v: %q", err, proof.Missing)
		}
	}
}

// slowLook has every look at what has to wait take a second, and counts those looks:
// what one says was true when it began.
func slowLook(f *fleet, step *actions.Items[string]) (looks func() int) {
	waits, n := step.Waits, 0
	step.Waits = func(ctx context.Context, c actions.StepContext, node string) (string, error) {
		why, err := waits(ctx, c, node)
		f.with(func() { n++ })
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return why, err
	}
	return func() (looked int) {
		f.with(func() { looked = n })
		return looked
	}
}

func TestARecheckDuringALookAtItemsIsFollowedByOneMoreLook(t *testing.T) {
	for name, ready := range map[string]bool{"which sees that it may go on": true, "which sees nothing new": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				f := newFleet()
				f.off["n01"] = true
				step := f.step(0)
				looks := slowLook(f, &step)
				w.requestTest()
				r := w.Start(w.onFleet(step, 1))
				w.Pass(time.Hour)
				r.Inbox.Recheck()
				w.Pass(500 * time.Millisecond)
				f.with(func() { f.off["n01"] = !ready })
				before := looks()
				r.Inbox.Recheck()
				if ready {
					if took := r.End(); took > 5*time.Second {
						t.Errorf("it was finished after %s, want right after the look that was under way", took)
					}
					return
				}
				w.Pass(10 * time.Second)
				if got := looks() - before; got != 1 {
					t.Errorf("%d looks followed within 10 s, want one", got)
				}
				w.Pass(time.Hour)
				if got := looks() - before; got > 200 {
					t.Errorf("%d looks followed within an hour, want now and then", got)
				}
				r.Halt()
			})
		})
	}
}

// TestOnlyWhatIsDoneHasAnOutcome: what failed or waits has none, and what was undone since
// and done again has that of now.
func TestOnlyWhatIsDoneHasAnOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *world) {
		f := newFleet()
		f.set["done"], f.set["found"], f.off["off"], f.fails["broken"] = true, true, true, errBroken
		step := f.step(0)
		asking, list := asked("done", "undone", "found", "off", "broken")
		step.List = list
		asking.Action.Steps = map[string]journal.StepRecord{"set": {Outputs: json.RawMessage(
			`{"items":{"done":{"outputs":"then"},"undone":{"outputs":"then"}}}`)}}
		_, err := step.Do(t.Context(), asking)
		unfinished, is := errors.AsType[*actions.UnfinishedError](err)
		if !is {
			t.Fatalf("got %v", err)
		}
		var got actions.Outcomes
		if err := json.Unmarshal(unfinished.Outputs, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]actions.Outcome{
			"done": {Outputs: json.RawMessage(`"then"`)}, "undone": {Outputs: json.RawMessage(`{"on":"undone"}`)}, "found": {AlreadyDone: true},
		}
		if diff := gocmp.Diff(want, got.Items); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAStepThatHadToWaitForItsItemsHoldsForALossOfWhichNobodyWasTold: who asked for it has
// gone meanwhile.
func TestAStepThatHadToWaitForItsItemsHoldsForALossOfWhichNobodyWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		f, loss := newFleet(), actionstest.NewPreflight(actions.Pass())
		f.off["n02"] = true
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, Manual: true})
		cfg := actionstest.With(w.onFleet(f.step(0), 2), map[string]actions.Preflight{"X": loss})
		cfg.Kinds[0].Guards = func(journal.ActionRecord, journal.PlannedStep) []string { return []string{"X"} }
		r := w.Start(cfg)
		w.Pass(10 * time.Second)
		loss.SetVerdict(actions.WarnOfLoss("data", "the data of n02 would be lost", "copy it first"))
		f.with(func() { f.off["n02"] = false })
		r.Inbox.Recheck()
		w.Pass(10 * time.Second)
		if hold := w.Record().Holds["set"]; hold.Preflight != "X" || f.times("n02") != 0 {
			t.Errorf("held by %+v, n02 was done %d times", hold, f.times("n02"))
		}
		r.Halt()
	})
}
