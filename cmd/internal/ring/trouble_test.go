package ring

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

func TestWhatHappenedOnAFullDiskIsToldAlthoughItIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		store := memory.New()
		w.store = store
		w.loseWorker()
		w.cluster.BeforeEffect = func(effect string) {
			if effect == "delete-node worker-2" {
				store.Break(syscall.ENOSPC)
			}
		}
		in := w.start(nil)
		pass(time.Minute)
		admitted, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		full := time.Now()
		pass(5 * time.Minute)
		w.cluster.AddNode("worker-9", journal.RoleWorker)
		pass(time.Minute)

		got := status(t, in)
		if got.Unrecorded[admitted.Action] != "delete-node is done" {
			t.Errorf("not recorded: %v", got.Unrecorded)
		}
		j := got.Journal
		if j.Writable || j.Error != syscall.ENOSPC.Error() || full.Sub(j.UnwritableSince) > 2*time.Second || !got.AsOf.Equal(j.UnwritableSince) {
			t.Errorf("the nodes are of %s, and of the journal it says %+v", got.AsOf, j)
		}
		since := "the journal cannot be written, since " + stamp(j.UnwritableSince) + ": no space left on device"
		_, unknownErr := in.Backend(nil).Explain(t.Context(), askPurge("worker-9"))
		pauseErr := in.Backend(nil).Do(t.Context(), api.PauseRequest{Reason: "r", Actor: "a"})
		_, requestErr := in.Backend(nil).Request(t.Context(), askPurge("worker-1"))
		for _, err := range []error{unknownErr, pauseErr, requestErr} {
			if err == nil || !strings.Contains(err.Error(), since) {
				t.Errorf("got %v, want %s", err, since)
			}
		}
		if !errors.Is(unknownErr, fsmnode.ErrUnknownNode) || !errors.Is(pauseErr, journal.ErrUnwritable) {
			t.Errorf("%v; %v", unknownErr, pauseErr)
		}
		if reasons := in.Unready(t.Context()); len(reasons) != 1 || !strings.Contains(reasons[0], since) {
			t.Errorf("/readyz says %q", reasons)
		}

		store.Break(nil)
		pass(time.Minute)
		if got := status(t, in); len(got.Unrecorded) != 0 || !got.Journal.Writable || !got.AsOf.IsZero() || len(got.Actions) != 0 {
			t.Errorf("with space again: %+v", got)
		}
		if n := w.machine("worker-2"); n.State != fsmnode.Purged || w.cluster.Count("delete-node worker-2") != 1 {
			t.Errorf("worker-2 is %s, deleted %d times", n.State, w.cluster.Count("delete-node worker-2"))
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestANameThatSeveralThingsHaveIsAnInvalidRequest(t *testing.T) {
	err := new(Backend).translateError(t.Context(), fmt.Errorf("pause minio: %w", fsm.ErrAmbiguous))
	if !errors.Is(err, api.ErrInvalid) || !errors.Is(err, fsm.ErrAmbiguous) || strings.Contains(err.Error(), api.ErrInvalid.Error()) {
		t.Errorf("got %v", err)
	}
}
