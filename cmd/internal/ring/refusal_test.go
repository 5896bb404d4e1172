package ring

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
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

func TestARingForOneCommandTakesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.onlyNode = "worker-2"
		in := w.start(nil)
		pass(time.Minute)
		before := w.state().Seq
		another := askPurge("worker-2")
		another.Kind = journal.ActionClearNode
		for name, request := range map[string]fsm.Request{"another node": askPurge("worker-1"), "another kind": another} {
			_, err := in.Backend(nil).Request(t.Context(), request)
			if !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "a command that purges worker-2 holds the journal; retry after it has ended") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := w.state().Seq; after != before {
			t.Errorf("%d events were written", after-before)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
