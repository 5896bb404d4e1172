package ring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal/memory"
)

// TestAnOlderCopyFollowsAlsoTheMirrorOfAnotherEKCO: the pause had ended before the other one began.
func TestAnOlderCopyFollowsAlsoTheMirrorOfAnotherEKCO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in := w.started()
		w.pauses(in, "", 0)
		pass(time.Minute)
		old := w.copied()
		w.command(in.Backend(nil).Resume(t.Context(), api.ResumeRequest{Actor: person}))
		pass(time.Hour)
		w.pauses(in, "worker-3", 0)
		w.dies(in)
		w.store = memory.New(memory.Clock(w.now))
		w.dies(w.started())

		w.store = old
		pass(time.Hour)
		in = w.started()
		pauses := w.state().Pauses
		if _, everything := pauses[""]; everything || len(pauses) != 1 {
			t.Errorf("in force are %+v", pauses)
		}
		w.stop(in)
	})
}

// TestAForceSurvivesAnEKCOThatTookTheActionOverAndDied before it had the mirror.
func TestAForceSurvivesAnEKCOThatTookTheActionOverAndDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		in := w.started()
		w.cluster.Forbid("get nodes") // it cannot be planned, so it stays as it is
		w.loseWorker()
		pass(time.Second)
		admission, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		w.dies(in)
		first := w.store

		w.store = memory.New(memory.Clock(w.now))
		w.cluster.Forbid("update configmaps")
		w.dies(w.started())
		second := w.store
		w.cluster.Allow("update configmaps")

		w.store = first
		in = w.started()
		w.command(in.Backend(nil).Retry(t.Context(), api.ActionCommand{Action: admission.Action, Force: true, Actor: person}))
		pass(time.Minute)
		want := w.onlyOpen().Forced
		w.dies(in)

		w.store = second
		in = w.started()
		if got := w.onlyOpen(); len(want) == 0 || len(got.Forced) != len(want) {
			t.Errorf("forced is %+v, want %+v", got.Forced, want)
		}
		w.stop(in)
	})
}
