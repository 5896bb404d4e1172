package ring

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/journal"
)

// visit lets another EKCO, with another journal, run for a moment.
func (w *world) visit(open ...journal.ActionRecord) {
	w.t.Helper()
	m := mirror.New(w.cluster, "visitor", slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	_, _ = m.Load(ctx) // there may be none
	m.Update(open, "", journal.Carried{})
	if err := m.Sync(ctx); err != nil {
		w.t.Error(err)
	}
	stop()
	<-ended
}

// firstHold waits until an action is held, and returns what it is held by.
func (w *world) firstHold(limit time.Duration) string {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < limit; pass(time.Second) {
		for _, event := range w.events(journal.Query{Types: []journal.Type{journal.TypeActionHeld}}) {
			return string(event.Payload)
		}
	}
	w.t.Fatalf("nothing is held within %s", limit)
	return ""
}

func TestAPurgeAfterAnotherEKCOsVisitIsHeldThenGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.PurgeDeadNodes = true
		in := w.start(nil)
		pass(time.Minute)
		w.visit()
		w.loseWorker()
		held := w.firstHold(6 * time.Hour)
		if !strings.Contains(held, "Mirrored") || !strings.Contains(held, "visitor") {
			t.Errorf("held as %s", held)
		}
		pass(5 * time.Minute)
		if n := w.cluster.Count("delete-node worker-2"); n != 1 {
			t.Errorf("the Node was deleted %d times, want once", n)
		}
		m, err := mirror.New(w.cluster, "reader", slog.New(slog.DiscardHandler)).Load(t.Context())
		if err != nil || m.JournalID == "visitor" || len(m.Ended) == 0 {
			t.Errorf("the mirror is %+v, %v", m, err)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		checkIntentBeforeEffect(t, w)
	})
}
