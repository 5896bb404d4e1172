package actions_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestAGateTakesNoDomains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{}
		w.requestTest()
		w.RunToEnd(w.atDoor(door, &script{steps: actions.BehindGate([]journal.PlannedStep{step("a")}, nil)}))
		if asked, _ := door.saw(); !slices.Equal(asked, []string{"a takes storage+nodes"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestWhatTakesAStepBackTakesNoOtherDomainEither(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		back := undoes("undo a", "a")
		back.Domains = []string{"sotrage"}
		w.requestTest()
		r := w.Start(w.atDoor(&doorkeeper{}, &script{steps: []journal.PlannedStep{step("a")}, undo: []journal.PlannedStep{back}}))
		w.Pass(time.Second)
		if reason := w.Record().Holds[""].Reason; !strings.Contains(reason, `step "undo a" takes domain "sotrage"`) {
			t.Errorf("held: %s", reason)
		}
		r.Halt()
	})
}

// TestAStepOfAnyKindTakesAHost for itself: its kind changes storage and nodes.
func TestAStepOfAnyKindTakesAHost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door, host := &doorkeeper{}, journal.DomainHost("w-1")
		w.requestTest()
		w.RunToEnd(w.atDoor(door, &script{steps: []journal.PlannedStep{taking("a", host)}}))
		if asked, _ := door.saw(); !slices.Equal(asked, []string{"a takes " + host}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// openDoor answers when it is told to.
type openDoor struct {
	doorkeeper
	slow chan struct{}
}

func (d *openDoor) Take(ctx context.Context, claim fsm.Claim) (fsm.Taken, bool, error) {
	taken, ok, err := d.doorkeeper.Take(ctx, claim)
	<-d.slow
	return taken, ok, err
}

func TestAGroupAsksOnceAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &openDoor{slow: make(chan struct{})}
		later := taking("b", "nodes")
		later.After = []string{"c"}
		k := &script{steps: []journal.PlannedStep{taking("a", "nodes"), later, taking("c")}}
		cfg := w.atDoor(&door.doorkeeper, k)
		cfg.Domains = door
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Minute)
		if asked, left := door.saw(); !slices.Equal(asked, []string{"a takes nodes"}) || len(left) != 0 {
			t.Errorf("asked %q, left %q", asked, left)
		}
		close(door.slow)
		r.End()
		if asked, left := door.saw(); len(asked) != 2 || len(left) != 0 {
			t.Errorf("asked %q, left %q", asked, left)
		}
	})
}

func TestAPlaceUnderAStepThatIsDoneIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var there atomic.Bool
		door := &doorkeeper{}
		k := &script{
			steps: []journal.PlannedStep{step("a"), step("b")},
			do:    func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
			prove: func(_ context.Context, id string) (bool, error) { return id == "a" && there.Load(), nil },
		}
		cfg := w.atDoor(door, k)
		cfg.Grace = time.Nanosecond
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Second)
		r.Halt()
		door.set(true, nil)
		r = w.Start(cfg)
		w.Pass(time.Minute)
		there.Store(true)
		r.Inbox.Recheck()
		w.Pass(time.Second)
		asked, left := door.saw()
		if last := asked[len(asked)-1]; last != "b takes storage+nodes" || !slices.Equal(left, []string{"a"}) {
			t.Errorf("asked %q, left %q", asked, left)
		}
		r.Halt()
	})
}

func TestWhoIsLetInWhileStoppingLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &openDoor{slow: make(chan struct{})}
		k := &script{steps: []journal.PlannedStep{step("a")}}
		cfg := w.atDoor(&door.doorkeeper, k)
		cfg.Domains = door
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Second)
		r.Stop()
		w.Pass(time.Second)
		close(door.slow)
		synctest.Wait()
		r.Halt()
		if _, left := door.saw(); len(k.calls()) != 0 || !slices.Equal(left, []string{"a"}) {
			t.Errorf("did %q, left %q", k.calls(), left)
		}
	})
}

func TestWhatHasStartedIsNotGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door, guard := &doorkeeper{}, actionstest.NewPreflight(actions.Pass())
		k := &script{
			steps: []journal.PlannedStep{guarded("a", "X")},
			do:    func(context.Context, string) error { guard.SetVerdict(actions.Hold("not now")); return errBroken },
			prove: func(context.Context, string) (bool, error) { return false, nil },
		}
		cfg := w.guardedBy(k, guard)
		cfg.Domains, cfg.Kinds[0].Domains = door, []string{"storage"}
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Hour)
		if asked, left := door.saw(); len(asked) != 1 || len(left) != 0 || w.Record().Holds["a"].Preflight != "X" {
			t.Errorf("asked %q, left %q, held by %+v", asked, left, w.Record().Holds)
		}
		r.Halt()
	})
}

func TestAStepThatWasHeldBeforeSaysAtOnceThatItWaitsForItsDomains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door, guard := &doorkeeper{closed: true}, actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		cfg := w.guardedBy(k, guard)
		cfg.Domains, cfg.Kinds[0].Domains = door, []string{"storage"}
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Minute)
		guard.SetVerdict(actions.Pass())
		r.Inbox.Recheck()
		w.Pass(time.Second)
		if hold := w.Record().Holds["a"]; hold.Preflight != actions.HoldDomains {
			t.Errorf("held by %+v", hold)
		}
		r.Halt()
	})
}

func TestAStepOfWhichItCannotBeToldWhetherItHappenedTakesNoDomains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{}
		k := &script{
			steps: []journal.PlannedStep{step("a"), taking("b", "nodes"), step("c", "b")},
			do: func(ctx context.Context, id string) error {
				if id == "a" {
					<-ctx.Done()
				}
				return ctx.Err()
			},
			prove: func(_ context.Context, id string) (bool, error) {
				if id == "a" {
					return false, errBroken
				}
				return true, nil
			},
		}
		cfg := w.atDoor(door, k)
		cfg.Grace = time.Nanosecond
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Second)
		r.Halt()
		before, _ := door.saw()
		r = w.Start(cfg)
		w.Pass(30 * time.Second)
		if asked, _ := door.saw(); len(asked) != len(before) || w.Count("failed a") == 0 {
			t.Errorf("asked %q, before %q; %q", asked, before, w.Story())
		}
		r.Halt()
	})
}

// others is a door that somebody keeps closed.
type others struct {
	doorkeeper
	who atomic.Value
}

func (d *others) Take(context.Context, fsm.Claim) (fsm.Taken, bool, error) {
	return fsm.Taken{By: d.who.Load().(string), Step: "cut-over", Domain: "storage"}, false, nil
}

func TestAHoldSaysForWhomItWaitsNow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door, k := &others{}, &script{steps: []journal.PlannedStep{step("a")}}
		cfg := w.atDoor(&door.doorkeeper, k)
		cfg.Domains = door
		door.who.Store("move-minio-1")
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Minute)
		door.who.Store("purge-w2-2")
		w.Pass(time.Minute)
		if hold := w.Record().Holds["a"]; !strings.HasPrefix(hold.Reason, "purge-w2-2 ") {
			t.Errorf("held by %+v", hold)
		}
		r.Halt()
	})
}

func TestAHoldIsNeverUnderAStepThatIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var there atomic.Bool
		guard := actionstest.NewPreflight(actions.Pass())
		k := &script{
			steps: []journal.PlannedStep{guarded("a", "X"), guarded("b", "X")},
			do:    func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
			prove: func(_ context.Context, id string) (bool, error) { return id == "a" && there.Load(), nil },
		}
		cfg := w.guardedBy(k, guard)
		cfg.Grace = time.Nanosecond
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Second)
		r.Halt()
		guard.SetVerdict(actions.Hold("not now"))
		r = w.Start(cfg)
		w.Pass(time.Minute)
		there.Store(true)
		r.Inbox.Recheck()
		w.Pass(time.Second)
		if record := w.Record(); len(record.Holds) != 1 || record.Holds["b"].Preflight != "X" {
			t.Errorf("held are %+v", record.Holds)
		}
		r.Halt()
	})
}

func TestWhoIsCancelledWhileItAsksLeavesAfterTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &openDoor{slow: make(chan struct{})}
		cfg := w.atDoor(&door.doorkeeper, &script{steps: []journal.PlannedStep{step("a")}})
		cfg.Domains = door
		w.requestTest()
		r := w.Start(cfg)
		w.Pass(time.Second)
		w.Cancel(r)
		w.Pass(time.Second)
		if _, left := door.saw(); len(left) != 0 {
			t.Errorf("it left %q before it was let in", left)
		}
		close(door.slow)
		r.End()
		if _, left := door.saw(); !slices.Equal(left, []string{"a"}) || w.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("left %q; %s", left, w.LastLine())
		}
	})
}

func TestAWaitOfAMomentIsNotOnRecordAndALongerOneIs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		door := &doorkeeper{closed: true}
		w.requestTest()
		r := w.Start(w.atDoor(door, &script{steps: []journal.PlannedStep{step("a")}}))
		w.Pass(2500 * time.Millisecond)
		if asked, _ := door.saw(); len(asked) == 0 || w.Count("held") != 0 {
			t.Errorf("it asked %q; %q", asked, w.Story())
		}
		w.Pass(10 * time.Second)
		if hold := w.Record().Holds["a"]; hold.Preflight != actions.HoldDomains || hold.Key != "move-minio-1" {
			t.Errorf("held by %+v", hold)
		}
		r.Halt()
	})
}
