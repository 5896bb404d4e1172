package ring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// ear keeps what it is told.
type ear struct{ told []journal.Payload }

func (e *ear) Tell(_ journal.Event, payload journal.Payload) { e.told = append(e.told, payload) }
func (e *ear) Recheck()                                      { e.told = append(e.told, nil) }

func TestAnAnsweredWarningHasItsActionLookAgainAndNoOther(t *testing.T) {
	asked, other := new(ear), new(ear)
	r := &Ring{words: vocabulary, workers: map[string]*worker{"purge-w1-1": {inbox: asked}, "purge-w2-2": {inbox: other}}}
	r.signalWorkers(journal.Event{
		Type: journal.TypeActionWarned, Version: 1, Action: "purge-w1-1", Payload: []byte(`{"preflight":"P","warning":"w","answer":"yes"}`),
	}.Decoded())
	want := journal.ActionWarned{Preflight: "P", Warning: "w", Answer: "yes"}
	if warned, ok := asked.only().(*journal.ActionWarned); !ok || *warned != want {
		t.Errorf("it was told %v", asked.told)
	}
	if len(other.told) != 0 {
		t.Error("another action was told as well")
	}
}

func (e *ear) only() journal.Payload {
	if len(e.told) != 1 {
		return nil
	}
	return e.told[0]
}

func TestAnActionIsToldThatAPersonJoinedIt(t *testing.T) {
	asked := new(ear)
	r := &Ring{words: vocabulary, workers: map[string]*worker{"purge-w1-1": {inbox: asked}}}
	r.signalWorkers(journal.Event{Type: journal.TypeActionJoined, Version: 1, Action: "purge-w1-1", Payload: []byte(`{}`)}.Decoded())
	if _, ok := asked.only().(*journal.ActionJoined); !ok {
		t.Error("it was not told")
	}
}

// purgeWaits leaves a purge of worker-2 waiting that a person asked for, and
// returns its id.
func (w *world) purgeWaits(in *incarnation, want journal.ActionStatus) string {
	w.t.Helper()
	w.loseWorker()
	pass(time.Second)
	admission, err := in.Backend(nil).Request(w.t.Context(), askPurge("worker-2"))
	if err != nil {
		w.t.Fatal(err)
	}
	// By now it rests for long between two tries.
	pass(2 * time.Hour)
	open := w.state().OpenActions()
	if len(open) != 1 || open[0].ID != admission.Action || open[0].Status != want {
		w.t.Fatalf("open is %+v, want %s, %s", open, admission.Action, want)
	}
	return admission.Action
}

func TestACancelReachesTheActionThatWaitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		w.cluster.Forbid(kubesim.GetNodes)
		in := w.start(nil)
		pass(time.Minute)
		action := w.purgeWaits(in, fsm.Held)
		w.command(in.Backend(nil).Do(t.Context(), api.CancelRequest{Action: action, Reason: "it comes back", Actor: "cli:root@test"}))
		pass(time.Second)
		if open := w.state().OpenActions(); len(open) != 0 {
			t.Errorf("a second after its cancel, open is %+v", open)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestARetryReachesTheActionThatStalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		w.cluster.Forbid(kubesim.DeleteNodes)
		in := w.start(nil)
		pass(time.Minute)
		action := w.purgeWaits(in, fsm.Stalled)
		w.cluster.Allow(kubesim.DeleteNodes)
		w.command(in.Backend(nil).Do(t.Context(), api.RetryRequest{Action: action, Reason: "allowed now", Actor: "cli:root@test"}))
		pass(time.Second)
		if n := w.cluster.Count("delete-node worker-2"); n != 1 {
			t.Errorf("a second after its retry, the Node was deleted %d times; open is %+v", n, w.state().OpenActions())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
