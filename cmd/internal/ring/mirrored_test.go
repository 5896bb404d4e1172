package ring

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/mirror"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// mirrored returns what the mirror holds.
func (w *world) mirrored() mirror.Content {
	w.t.Helper()
	var content mirror.Content
	if err := json.Unmarshal([]byte(w.mirror()), &content); err != nil {
		w.t.Fatal(err)
	}
	return content
}

// deafStore tells nobody that something was appended, and takes a moment to be
// read: who had the loop do something is served before the loop has gone on.
type deafStore struct{ journal.Store }

func (s deafStore) Read(ctx context.Context, query journal.Query) iter.Seq2[journal.Event, error] {
	time.Sleep(time.Second)
	return s.Store.Read(ctx, query)
}

func (deafStore) Follow(ctx context.Context, _ uint64) iter.Seq2[journal.Event, error] {
	return func(func(journal.Event, error) bool) { <-ctx.Done() }
}

func TestMirroredPassesOnlyOnceTheActionIsThereAsTheJournalHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store = deafStore{w.store}
		// It cannot be planned, so it stays as it is.
		w.cluster.Forbid(kubesim.GetNodes)
		in := w.start(nil)
		pass(time.Hour)
		w.recordRequest("purge-worker-2-1", "worker-2")
		record := w.onlyOpen()
		if verdict := in.requireMirrored(t.Context(), record); verdict.Kind != actions.VerdictPass {
			t.Errorf("the verdict is %+v", verdict)
		}
		if there := w.mirrored().Actions; !slices.ContainsFunc(there, func(r journal.ActionRecord) bool {
			return r.ID == record.ID && r.LastSeq >= record.LastSeq
		}) {
			t.Errorf("the preflight passed, and the mirror holds %+v", there)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// dieBeforeDone has an incarnation die with the purge's step open: its effect
// has happened, and that it has is not on disk.
func dieBeforeDone(in *incarnation) {
	in.store.stalls = func(drafts []journal.Draft) bool {
		return slices.ContainsFunc(drafts, func(d journal.Draft) bool { return d.Type == journal.TypeStepDone })
	}
}

func TestAnOpenStepThatIsAdoptedIsProvedAndNotBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		first := w.start(dieBeforeDone)
		pass(time.Minute)
		w.loseWorker()
		pass(time.Second)
		if _, err := first.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		first.life.kill()
		t.Logf("the first one ended: %v", soon(t, first.ended))
		left := w.mirrored().Actions
		if len(left) != 1 || !left[0].Steps["delete-node"].Open || w.cluster.Count("delete-node worker-2") != 1 {
			t.Fatalf("the mirror holds %+v after %+v, want the one step open whose effect has happened", left, w.cluster.Effects())
		}

		w.store = memory.New() // it was on the disk that is lost
		second := w.start(nil)
		pass(time.Minute)
		if n := w.cluster.Count("delete-node worker-2"); n != 1 {
			t.Errorf("the Node was deleted %d times, want once", n)
		}
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("the node is %s, want Purged; open is %+v", got, w.state().OpenActions())
		}
		for _, event := range w.events(journal.Query{Types: []journal.Type{journal.TypeStepStarted}}) {
			t.Errorf("a step was restarted: %s", event.Payload)
		}
		if err := second.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestOnlyAReversibleActionGoesOnBeforeItsLastStepIsMirrored lets each write of the mirror take some seconds.
func TestOnlyAReversibleActionGoesOnBeforeItsLastStepIsMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy.ClearDeadNodes = false
		w.cluster.Forbid(kubesim.DeleteNodes)
		w.loseWorker()
		in := w.started()
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		irreversible := w.onlyOpen()
		w.cluster.Forbid(kubesim.GetNodes) // the next one cannot be planned
		w.recordRequest("purge-worker-3-1", "worker-3")
		pass(time.Minute)
		reversible := func(change func(r *journal.ActionRecord)) journal.ActionRecord {
			record := irreversible
			record.Plan.Steps = slices.Clone(record.Plan.Steps)
			for i := range record.Plan.Steps {
				record.Plan.Steps[i].Irreversible = false
			}
			change(&record)
			return record
		}
		w.cluster.SetLatency(5 * time.Second)
		for _, c := range []struct {
			name   string
			record journal.ActionRecord
			waits  bool
		}{
			{"an irreversible one", irreversible, true},
			{"a reversible one", reversible(func(*journal.ActionRecord) {}), false},
			{"one that the mirror does not hold", reversible(func(r *journal.ActionRecord) { r.ID = "other" }), true},
			{"one whose plan it does not hold", reversible(func(r *journal.ActionRecord) { r.ID = "purge-worker-3-1" }), true},
			{"one that left something alone since", reversible(func(r *journal.ActionRecord) { r.Left = map[string]string{"osd.1": "another's"} }), true},
			{"one that EKCO asks for again by itself", reversible(func(r *journal.ActionRecord) { r.ID, r.Kind = "other", journal.ActionClearNode }), false},
		} {
			w.tell(journal.NodeSubject("worker-1", ""), journal.TypePauseSet, journal.PauseSet{Reason: c.name})
			began := time.Now()
			in.requireMirrored(t.Context(), c.record)
			if waited := time.Since(began) > 0; waited != c.waits {
				t.Errorf("%s waited: %t, want %t", c.name, waited, c.waits)
			}
			pass(time.Minute)
		}
		w.cluster.Forbid("update configmaps")
		w.tell(journal.NodeSubject("worker-1", ""), journal.TypePauseSet, journal.PauseSet{Reason: "the mirror cannot be written"})
		pass(time.Minute)
		began := time.Now()
		if in.requireMirrored(t.Context(), reversible(func(*journal.ActionRecord) {})); time.Since(began) == 0 {
			t.Error("a reversible one did not wait while the mirror cannot be written")
		}
		w.cluster.SetLatency(0)
		w.stop(in)
	})
}

func TestAnExclusiveActionIsNotReversible(t *testing.T) {
	r := &Ring{kinds: []actions.Kind{{Definition: actions.Definition{Kind: journal.ActionRepairMinio, Exclusive: true}}}}
	record := journal.ActionRecord{Kind: journal.ActionRepairMinio}
	if r.isReversible(record) {
		t.Error("it is")
	}
	record.Kind = journal.ActionClearNode
	if !r.isReversible(record) {
		t.Error("another one is not")
	}
}

// recordRequest has a manual purge of a live node on record.
func (w *world) recordRequest(action, node string) {
	w.t.Helper()
	request := journal.Draft{
		Type: journal.TypeActionRequested, Actor: Actor, Action: action, Subject: journal.NodeSubject(node, w.machine(node).UID),
		Payload: journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "test", Manual: true, Input: journal.PurgeInput{Live: true}},
	}
	if _, err := w.store.Append(w.t.Context(), request); err != nil {
		w.t.Fatal(err)
	}
}
