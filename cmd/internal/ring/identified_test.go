package ring

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// answer is what a request came to.
type answer struct {
	admitted  api.Admission
	explained api.Explanation
	err       error
}

// asking asks for a purge of worker-2, or what it would be, and returns at once.
func asking(t *testing.T, in *incarnation, explain bool) <-chan answer {
	t.Helper()
	answered := make(chan answer, 1)
	go func() {
		var a answer
		if explain {
			a.explained, a.err = in.Backend(nil).Explain(t.Context(), askPurge("worker-2"))
		} else {
			a.admitted, a.err = in.Backend(nil).Request(t.Context(), askPurge("worker-2"))
		}
		answered <- a
	}()
	return answered
}

// soon returns what is sent within a minute of the bubble's time.
func soon[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
	}
	panic("unreachable")
}

func TestARequestIsNotJudgedByWhatTheJournalKnewBeforeTheClusterIsSeen(t *testing.T) {
	for _, explain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := afterAnEarlierOne(t)
			replacement := w.cluster.ReplaceNode("worker-2")
			in := w.start(nil)
			pass(time.Second)
			answered := asking(t, in, explain)
			pass(10 * time.Second)
			if len(answered) != 0 {
				t.Fatalf("answered %+v before EKCO had seen the cluster", <-answered)
			}
			w.cluster.Outage(false)
			got := soon(t, answered)
			if got.err != nil {
				t.Fatal(got.err)
			}
			about := got.explained.Subject
			if !explain {
				about = w.requested(got.admitted.Action)
			}
			if about.UID != replacement.UID {
				t.Errorf("explain %t: the purge is of %+v, want the machine that has the name now, %s", explain, about, replacement.UID)
			}
			if err := in.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// requested returns what an action was requested for.
func (w *world) requested(action string) journal.Subject {
	w.t.Helper()
	events := w.events(journal.Query{Action: action, Types: []journal.Type{journal.TypeActionRequested}})
	if len(events) != 1 {
		w.t.Fatalf("%s was requested %d times", action, len(events))
	}
	return events[0].Subject
}

func TestARequestIsNotWrittenIntoTheJournalOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := afterAnEarlierOne(t)
		w.cluster.SetClusterUID("uid-of-elsewhere")
		before := w.state().Seq
		in := w.start(nil)
		pass(time.Second)
		answered := asking(t, in, false)
		pass(10 * time.Second)
		w.cluster.Outage(false)
		if got := soon(t, answered); got.err == nil {
			t.Errorf("admitted %+v", got.admitted)
		}
		if err := soon(t, in.ended); !errors.Is(err, journal.ErrOtherCluster) {
			t.Errorf("EKCO ended with %v", err)
		}
		if events := w.events(journal.Query{After: before}); len(events) != 0 {
			t.Errorf("the journal of another cluster got %+v", events)
		}
	})
}
