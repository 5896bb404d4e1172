package ring

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/memory"
)

// TestAPauseThatWasTakenOverAndShortenedStaysShort: EKCO restarts before the mirror has the change.
func TestAPauseThatWasTakenOverAndShortenedStaysShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.dies(in)

		w.store = memory.New(memory.Clock(w.now))
		w.cluster.Forbid("update configmaps")
		in = w.started()
		err := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "an hour", For: time.Hour, Actor: person})
		if !errors.Is(err, api.ErrNotMirrored) {
			t.Fatal(err)
		}
		w.dies(in)
		w.cluster.Allow("update configmaps")
		in = w.started()
		if got := w.state().Pauses[""]; got.Reason != "an hour" {
			t.Errorf("in force is %+v", got)
		}
		pass(2 * time.Hour)
		if len(w.state().Pauses) != 0 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}

// TestAPauseThatWasTakenOverEndsWithItsOrigin: the EKCO that took it over died before it had the mirror, and the first
// one came back and ended the pause.
func TestAPauseThatWasTakenOverEndsWithItsOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		w.dies(in)
		first := w.store

		w.store = memory.New(memory.Clock(w.now))
		w.cluster.Forbid("update configmaps")
		in = w.started()
		if len(w.state().Pauses) != 1 {
			t.Fatalf("in force are %+v", w.state().Pauses)
		}
		w.dies(in)
		second := w.store
		w.cluster.Allow("update configmaps")

		w.store = first
		in = w.started()
		w.command(in.Backend(nil).Do(t.Context(), api.ResumeRequest{Actor: person}))
		w.dies(in)

		w.store = second
		in = w.started()
		if len(w.state().Pauses) != 0 {
			t.Errorf("in force are %+v", w.state().Pauses)
		}
		w.stop(in)
	})
}
