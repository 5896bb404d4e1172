package actions_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func TestARecheckEndsAHoldWhoseCauseIsGoneAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("another action is under way"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(10 * time.Minute)
		guard.SetVerdict(actions.Pass())
		r.Inbox.Recheck()
		if took := r.End(); took > 100*time.Millisecond {
			t.Errorf("the action went on after %s, want at once", took)
		}
		w.WantStory("requested", "planned 1", `held "a" by X`, `released "a" by X`, "started a #1", "done a #1", "ended done")
	})
}

func TestARecheckDuringALookIsFollowedByAnotherLook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var looks atomic.Int32
		slow := actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			if looks.Add(1) == 1 {
				<-time.After(2 * time.Second) // what it answers was true when it began
				return actions.Hold("not yet")
			}
			return actions.Pass()
		})
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, slow))
		w.Pass(time.Second)
		r.Inbox.Recheck()
		if took := r.End(); took > 1500*time.Millisecond {
			t.Errorf("the action went on after %s, want right after the look that was under way", took)
		}
	})
}

func TestARecheckOfWhatIsStillHeldIsOneLookAndNoEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		guard := actionstest.NewPreflight(actions.Hold("not yet"))
		k := &script{steps: []journal.PlannedStep{guarded("a", "X")}}
		w.requestTest()
		r := w.Start(w.guardedBy(k, guard))
		w.Pass(10 * time.Minute)
		before := guard.Calls()
		r.Inbox.Recheck()
		synctest.Wait()
		if got := guard.Calls() - before; got != 1 {
			t.Errorf("%d looks, want 1", got)
		}
		w.WantStory("requested", "planned 1", `held "a" by X`)
		r.Halt()
	})
}

func TestARecheckPlansAgainAtOnceAndLeavesFailedStepsTheirRest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		k := &script{steps: []journal.PlannedStep{step("a")}}
		k.plan = func() error {
			if broken.Load() {
				return errBroken
			}
			return nil
		}
		k.do = func(context.Context, string) error { return errBroken }
		k.prove = func(context.Context, string) (bool, error) { return false, nil }
		w.requestTest()
		r := w.Start(w.Config(k.kinds()))
		w.Pass(10 * time.Minute)
		broken.Store(false)
		r.Inbox.Recheck()
		w.Pass(100 * time.Millisecond)
		w.WantStory("requested", `held "" by Plan`, `released "" by Plan`, "planned 1", "started a #1", "failed a #1")
		r.Inbox.Recheck()
		w.Pass(100 * time.Millisecond)
		if got := w.Count("started a"); got != 1 {
			t.Errorf("%d attempts: a recheck is no retry", got)
		}
		r.Halt()
	})
}
