package ring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

var errKilled = fmt.Errorf("%w: signal: killed", journal.ErrUnverified)

// onlook starts an onlooker in the world, and returns how its wait ends.
func (w *world) onlook(open func(context.Context, int) error) (*Onlooker, <-chan error) {
	o := NewOnlooker(OnlookerConfig{
		Path: "/journal.db", Identity: journal.OperatorStarted{Version: "v0.0.0", Host: "test", PID: 1},
		Capabilities: w.capabilities(), Observe: w.observe, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Metrics: noMetrics{},
	}, errKilled)
	ended := make(chan error, 1)
	go func() { ended <- o.Wait(w.t.Context(), open) }()
	return o, ended
}

func TestAnEKCOWithoutAJournalObservesAndActsOnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPods()
		w.openPurge()
		mirrored, effects, notes := w.mirror(), len(w.cluster.Effects()), len(w.cluster.Events())
		opened := make(chan struct{})
		o, ended := w.onlook(func(context.Context, int) error {
			select {
			case <-opened:
				return nil
			default:
				return errKilled
			}
		})
		pass(3 * time.Hour)
		status, err := o.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]journal.NodeState{}
		for _, node := range status.Nodes {
			states[node.Name] = node.State
		}
		if len(states) != 6 || states["worker-1"] != fsmnode.Healthy || states["worker-2"] != fsmnode.Unknown {
			t.Errorf("it sees %v", states)
		}
		if u := status.Journal.Unopened; u == nil || !strings.Contains(u.Problem, "killed") || !u.NextTry.After(status.Now) {
			t.Errorf("it says %+v", u)
		}
		if reasons := o.Unready(t.Context()); len(reasons) != 1 || !strings.Contains(reasons[0], "killed") {
			t.Errorf("it is unready for %q", reasons)
		}
		_, err = o.Request(t.Context(), askPurge("worker-2"))
		if !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "the journal has not been open since") {
			t.Errorf("a purge is answered by %v", err)
		}
		for _, err := range o.Events(t.Context(), journal.Query{}, true) {
			if !errors.Is(err, api.ErrRefused) {
				t.Errorf("history is answered by %v", err)
			}
		}
		if w.mirror() != mirrored || len(w.cluster.Effects()) != effects || len(w.cluster.Events()) != notes {
			t.Errorf("it had effects: %+v", w.cluster.Effects()[effects:])
		}
		close(opened)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAJournalThatCannotBeOpenedIsTriedAgainWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		var tries []time.Duration
		_, ended := w.onlook(func(_ context.Context, attempt int) error {
			if tries = append(tries, time.Since(began)); attempt != len(tries) {
				t.Errorf("try %d is said to be %d", len(tries), attempt)
			}
			switch {
			case attempt == 2:
				return journal.ErrLocked // by somebody who verifies it
			case attempt < 20:
				return errKilled
			}
			return nil
		})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if first := tries[0]; first > 10*time.Second {
			t.Errorf("the first pause is %s", first)
		}
		if last := tries[19] - tries[18]; last < 2*time.Minute || last > 10*time.Minute {
			t.Errorf("the last pause is %s", last)
		}
	})
}

func TestWhatDoesNotPassEndsTheWait(t *testing.T) {
	for _, err := range []error{
		journal.ErrOtherFormat, journal.ErrNotAJournal, fmt.Errorf("%w: %w", journal.ErrUnwritable, fs.ErrPermission),
	} {
		synctest.Test(t, func(t *testing.T) {
			_, ended := newWorld(t).onlook(func(context.Context, int) error { return err })
			if got := <-ended; !errors.Is(got, err) || MayPass(err) {
				t.Errorf("%v ends in %v", err, got)
			}
		})
	}
	for _, err := range []error{errKilled, journal.ErrUnwritable, journal.ErrDamaged} {
		if !MayPass(err) {
			t.Errorf("%v is final", err)
		}
	}
}
