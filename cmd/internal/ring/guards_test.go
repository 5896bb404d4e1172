package ring

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

func TestAnEKCOThatMayNotWriteTheMirrorDoesNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.Forbid(kubesim.UpdateConfigMaps)
		in := w.start(nil)
		pass(time.Second)
		w.loseWorker()
		pass(time.Second)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		w.wantPurged("without the permission")
		mustStop(t, in)
	})
}

// unreadable is an API whose mirror cannot be read for now.
type unreadable struct {
	kube.API
	now *atomic.Bool
}

func (u unreadable) ReadMirror(ctx context.Context) ([]byte, string, error) {
	if u.now.Load() {
		return nil, "", kube.ErrUnavailable
	}
	return u.API.ReadMirror(ctx)
}

func TestNothingBeginsBeforeTheMirrorWasReadThatTheAPIDoesNotAnswerFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		w.store = memory.New()
		var now atomic.Bool
		now.Store(true)
		in := w.start(func(in *incarnation) { in.kube.API = unreadable{w.cluster, &now} })
		pass(10 * time.Minute)
		if in.isStarted() || len(w.events(journal.Query{Types: []journal.Type{journal.TypeOperatorStarted}})) != 0 {
			t.Error("it began without a word from the mirror")
		}
		now.Store(false)
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("the node is %s", got)
		}
		mustStop(t, in)
	})
}

func TestAJournalThatWentOnAfterItsSalvageIsComparedFromThereOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lostPurge()
		kept := w.state().Seq
		w.salvaged()
		for range 100 { // without EKCO: as somebody who paused and resumed
			w.tell(journal.ClusterSubject, journal.TypePauseSet, journal.PauseSet{})
			w.tell(journal.ClusterSubject, journal.TypePauseCleared, journal.PauseCleared{})
		}
		in := w.start(nil)
		pass(time.Hour)
		if lost := w.outdated(); len(lost) != 1 || lost[0].LastSeq != kept {
			t.Errorf("the journal says %+v, want that event %d is the last it kept", lost, kept)
		}
		mustStop(t, in)
	})
}

func TestARingForOneCommandTakesNoPurgeOfAnotherNodeThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.LoseNode("worker-1")
		w.onlyNode = "worker-2"
		in := w.start(nil)
		pass(time.Minute)
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-1")); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), "purges worker-2") {
			t.Errorf("a purge of another node is answered with %v", err)
		}
		pass(time.Hour)
		w.wantNothingDeleted("a command for another node")
		mustStop(t, in)
	})
}
