package ring

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// What retention (journal_max_size) leaves must make no loss older when the state
// is folded again without a snapshot, as after an upgrade (another FoldName).
func TestAJumpThatRetentionMovedOutMakesNoLossOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := automatic(t)
		w.setClock(-3 * time.Hour)
		in := w.start(nil)
		pass(time.Minute)
		w.loseWorker()
		pass(time.Minute)
		w.setClock(0) // somebody puts the clock right
		pass(2 * time.Minute)
		w.cluster.Exclude("worker-1", true) // any later news of another node
		pass(time.Minute)
		keep, err := in.Needed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		folded := fsm.NewState(fsmnode.Capability())
		for _, event := range w.events(journal.Query{}) {
			if strings.HasPrefix(string(event.Type), "journal.") || keep(event) {
				folded.Apply(event)
			}
		}
		// The next start, an upgrade of the same boot.
		draft := journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: Actor, Payload: journal.OperatorStarted{Version: "v2", Host: "test"}}
		started, err := draft.Event()
		if err != nil {
			t.Fatal(err)
		}
		started.Seq, started.Time = folded.Seq+1000, time.Now().UTC()
		whole := w.state()
		folded.Apply(started)
		age := func(s *fsm.State) time.Duration {
			return time.Since(fsmnode.ByName(s, "worker-2")[0].UnreachableSince).Round(time.Second)
		}
		t.Logf("by the whole journal lost for %s, by what retention leaves for %s (purge_after %s)", age(whole), age(folded), w.policy.PurgeAfter)
		if age(folded) > age(whole)+time.Minute {
			t.Errorf("the loss is %s old, and was %s", age(folded), age(whole))
		}
		mustStop(t, in)
	})
}

func TestRetentionKeepsAJumpOfTheClockAfterAllThatAnAgeCountsFrom(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(w *world, in *incarnation)
	}{
		"a pause": {func(w *world, in *incarnation) {
			w.command(in.Backend(nil).Do(w.t.Context(), api.PauseRequest{For: 10 * time.Hour, Actor: "cli:root@test"}))
		}, func(w *world, _ *incarnation) { w.cluster.Exclude("worker-1", true) }},
		"a pod of a node of which there are newer facts": {
			func(w *world, _ *incarnation) { w.addPods(); w.loseWorker() },
			func(w *world, _ *incarnation) { w.cluster.Exclude("worker-2", true) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				in := w.start(nil)
				pass(time.Minute)
				test.before(w, in)
				pass(time.Minute)
				w.setClock(-3 * time.Hour)
				pass(time.Minute)
				test.after(w, in)
				pass(time.Minute)
				keep, err := in.Needed(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				jumps := w.events(journal.Query{Types: []journal.Type{journal.TypeClockJumped}})
				if len(jumps) != 1 || !keep(jumps[0]) {
					t.Errorf("of %d jumps one may leave the journal", len(jumps))
				}
				mustStop(t, in)
			})
		})
	}
}
