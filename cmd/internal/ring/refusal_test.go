package ring

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestARefusalIsRecordedWhenThePersonWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.MinReadyWorkers = 3
		in := w.start(nil)
		pass(time.Minute)
		backend := in.Backend(nil)
		request := askPurge("worker-2")
		refusals := journal.Query{Types: []journal.Type{journal.TypeActionRefused}}
		if _, err := backend.Explain(t.Context(), request); !errors.Is(err, fsm.ErrRefused) {
			t.Fatalf("explained: %v, want refused", err)
		}
		request.Refused = true
		if _, err := backend.Request(t.Context(), request); !errors.Is(err, fsm.ErrRefused) {
			t.Fatalf("requested: %v, want refused", err)
		}
		if got := w.events(refusals); len(got) != 1 || got[0].Subject.Name != "worker-2" {
			t.Errorf("recorded %v, want one refusal", got)
		}
		request.Input = []byte(`{"min_ready_workers":0}`)
		if _, err := backend.Request(t.Context(), request); !errors.Is(err, fsm.ErrNotRefused) {
			t.Errorf("requested when nothing refuses any more: %v", err)
		}
		if open := w.state().OpenActions(); len(open) != 0 {
			t.Errorf("admitted %v", open)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
