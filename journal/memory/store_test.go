package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/journaltest"
	"github.com/replicatedhq/ekco/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAMemoryStoreIsAJournal(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return memory.New() })
}

func pause(reason string) journal.Draft {
	return journal.Draft{
		Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "test",
		Payload: journal.PauseSet{Reason: reason},
	}
}

func TestAReopenedStoreGoesOnWhereTheOldOneEnded(t *testing.T) {
	ctx := t.Context()
	old := memory.New()
	if err := old.BindCluster(ctx, "cluster"); err != nil {
		t.Fatal(err)
	}
	store := old.Reopen()
	if _, err := old.Append(ctx, pause("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("the old store still appends: %v", err)
	}
	events, err := store.Append(ctx, pause("next"))
	if err != nil || events[0].Seq != 2 {
		t.Errorf("append after reopening: %v, %v", events, err)
	}
	if err := store.BindCluster(ctx, "other"); !errors.Is(err, journal.ErrOtherCluster) {
		t.Errorf("the reopened store forgot its cluster: %v", err)
	}
}

func TestABrokenStoreRefusesWritesUntilMended(t *testing.T) {
	ctx := t.Context()
	store := memory.New()
	cause := errors.New("no space")
	store.Break(cause)
	if _, err := store.Append(ctx, pause("lost")); !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, cause) {
		t.Errorf("append to a broken store: %v", err)
	}
	store.Break(nil)
	if events, err := store.Append(ctx, pause("kept")); err != nil || events[0].Seq != 2 {
		t.Errorf("append to a mended store: %v, %v", events, err)
	}
}

func TestItWorksInABubbleOfFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		begin := time.Now()
		go func() {
			time.Sleep(time.Hour)
			if _, err := store.Append(context.Background(), pause("later")); err != nil {
				t.Error(err)
			}
		}()
		for event, err := range store.Follow(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			if got := event.Time.Sub(begin); got != time.Hour {
				t.Errorf("the event came after %s, want 1h", got)
			}
			break
		}
	})
}
