package minio

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

var sixteenOf200 = map[string]string{"data/7": "it is missing on drive http://ha-minio-3", "data/8": "it is missing on drive http://ha-minio-3"}

func TestNoReplicaThatRunsIsTakenAwayWhileADriveLacksSomething(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.Lack(sixteenOf200)
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		w.Pass(2 * time.Hour)
		s.held(journal.StepLookBeforeMinio, actions.HoldNextAttempt, "2 things, such as data/7: it is missing on drive http://ha-minio-3; look at that drive")
		if len(s.Effects()) != 0 || s.Looks() < 4 {
			t.Errorf("deleted were %q after %d looks", s.took(), s.Looks())
		}
		s.Lack(nil)
		r.End()
		if !slices.Equal(s.took(), both) || w.LastLine() != "ended done" {
			t.Errorf("deleted were %q: %s", s.took(), w.LastLine())
		}
	})
}

func TestAMoveIsDoneOnlyWhenAllIsOnAllDrivesAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		s.AfterEffect = func(string) { // the new drive is called restored, and is not
			s.Lack(sixteenOf200)
			time.AfterFunc(20*time.Second, s.Reconcile)
		}
		r := w.Start(w.Config(s.definitions()))
		w.Pass(2 * time.Hour)
		s.held(journal.StepLookAfterMinio, actions.HoldNextAttempt, "not all data is on all drives of MinIO")
		if w.Ended() || !slices.Equal(s.took(), both) {
			t.Errorf("deleted were %q: %s", s.took(), w.LastLine())
		}
		if occupied := w.Record().Occupies(time.Now()); len(occupied) != 0 {
			t.Errorf("while it waits it occupies %v", occupied)
		}
		s.Lack(nil)
		r.End()
		s.tells("done look-before", "done delete-claim", "done delete-pod", "done await-replica", "done look-after", "ended done")
	})
}

// TestWhatLacksSomethingOnlyOnceWasJustWritten, or removed: clients go on meanwhile.
func TestWhatLacksSomethingOnlyOnceWasJustWritten(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		s.Lack(map[string]string{"data/1": "no such object"})
		time.AfterFunc(3*time.Second, func() { s.Lack(map[string]string{"data/2": "no such object"}) })
		r := w.Start(w.Config(s.definitions()))
		w.Pass(10 * time.Second)
		if w.Count("done look-before") != 1 || s.Looks() != 2 {
			t.Errorf("after %d looks: %q", s.Looks(), w.Story())
		}
		s.Lack(nil)
		r.End()
	})
}

func TestWhereMinIOCannotLookNothingThatRunsIsTakenAway(t *testing.T) {
	for reason, because := range map[string]error{
		"ha-minio does not accept the credentials of Secret minio-credentials": s3.ErrDenied,
		"ha-minio does not answer: it does so already for somebody else":       s3.ErrHealing,
		"ha-minio does not answer: broken":                                     errors.New("broken"),
	} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			s := installed(w)
			s.crowded()
			s.moves(0)
			s.Deafen(because)
			r := w.Start(w.Config(s.definitions()))
			w.Pass(time.Hour)
			s.held(journal.StepLookBeforeMinio, actions.HoldNextAttempt, "whether all data is on all drives of MinIO is not known: "+reason)
			if record := w.Record(); len(s.Effects()) != 0 || record.Stalled != nil {
				t.Errorf("deleted were %q, stalled %v", s.took(), record.Stalled)
			}
			s.Deafen(nil)
			r.End()
			if !slices.Equal(s.took(), both) {
				t.Errorf("deleted were %q", s.took())
			}
		})
	}
}

// TestAReplicaThatDoesNotRunGetsAnotherVolumeUnlooked: what it had is restored only by that.
func TestAReplicaThatDoesNotRunGetsAnotherVolumeUnlooked(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.orphaned()
		s.Lack(sixteenOf200)
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		s.comes(journal.StepLookAfterMinio, actions.HoldNextAttempt, "not all data is on all drives")
		if !slices.Equal(s.took(), both) || w.Count("look-before") != 0 {
			t.Errorf("deleted were %q: %q", s.took(), w.Story())
		}
		s.Lack(nil)
		r.End()
	})
}

func TestALookThatIsOldCountsNoMore(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.Silence(5, true)
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		w.Pass(lookedWithin + 5*time.Minute)
		s.held(journal.StepDeleteMinioClaim, MinioCanSpare, "ha-minio-5: ask MinIO")
		s.Silence(5, false)
		r.End()
		if len(s.Effects()) != 0 || !strings.Contains(s.last(), `"abandoned"`) || !strings.Contains(s.last(), "have passed; it begins anew") {
			t.Errorf("deleted were %q: %s", s.took(), s.last())
		}
	})
}

func TestAMoveThatAnEarlierEKCOPlannedTakesNothingAwayUnlooked(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		old := s.definitions()
		for i, kind := range old {
			plan := kind.Plan
			old[i].Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
				made, err := plan(ctx, record)
				made.Steps = slices.DeleteFunc(made.Steps, func(step journal.PlannedStep) bool { return strings.HasPrefix(step.ID, "look-") })
				made.Steps[0].After = nil
				return made, err
			}
		}
		w.RunToEnd(w.Config(old))
		if len(s.Effects()) != 0 || !strings.Contains(s.last(), `"abandoned"`) || !strings.Contains(s.last(), "an earlier EKCO planned it") {
			t.Errorf("deleted were %q: %s", s.took(), s.last())
		}
	})
}

// TestALookThatTakesHoursCounts: it is as old as its end.
func TestALookThatTakesHoursCounts(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.LookFor(3 * lookedWithin)
		s.moves(0)
		w.RunToEnd(w.Config(s.definitions()))
		if !slices.Equal(s.took(), both) || w.LastLine() != "ended done" {
			t.Errorf("deleted were %q: %s", s.took(), w.LastLine())
		}
	})
}

// TestWhatWasNotNamedBeforeMayLackSomethingStill: that it is named for the first time does not say
// that it was just written.
func TestWhatWasNotNamedBeforeMayLackSomethingStill(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		s.Lack(sixteenOf200)
		s.LackUnnamed(5)
		time.AfterFunc(3*time.Second, func() {
			s.Lack(map[string]string{"data/9": "it is missing on drive http://ha-minio-3"})
			s.LackUnnamed(0)
		})
		r := w.Start(w.Config(s.definitions()))
		w.Pass(time.Hour)
		s.held(journal.StepLookBeforeMinio, actions.HoldNextAttempt, "data/9")
		if len(s.Effects()) != 0 {
			t.Errorf("deleted were %q", s.took())
		}
		s.Lack(nil)
		r.End()
	})
}
