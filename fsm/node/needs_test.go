package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// retain folds again what the state needs of its journal, as after all other events
// have left and the snapshot is of another shape.
func (w *world) retain() {
	w.t.Helper()
	needs, open := w.s.Needs(), w.s.Actions
	w.s = fsm.NewState(Capability())
	for _, e := range w.events {
		if e.Seq == 1 || needs.Keeps(e) || open[e.Action] != nil {
			w.s.Apply(e)
		}
	}
	w.start()
	w.pass(time.Minute)
}

func TestACancelledPurgeIsRememberedWhateverLeftTheJournalSince(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeCancelled)
	w.decide()
	w.pass(24 * time.Hour)
	w.observe("w1", w.asLost("w1"), primary)
	w.decide()
	w.retain()
	w.wantDecided("policy.refused w1: purge-node by TriedBefore")
}

// TestALossIsAsOldAfterRetention: of an earlier one the facts are kept by which an action ended, and where the taint has no
// time, they look the same.
func TestALossIsAsOldAfterRetention(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeCancelled)
	w.decide()
	w.pass(24 * time.Hour)
	w.observe("w1")
	w.pass(time.Hour)
	w.observe("w1", unreachableSince(time.Time{}))
	w.pass(time.Minute)
	w.observe("w1", unreachableSince(time.Time{}), primary)
	since, needs, kept := w.node("w1").UnreachableSince, w.s.Needs(), fsm.NewState(Capability())
	for _, e := range w.events {
		if needs.Keeps(e) {
			kept.Apply(e)
		}
	}
	if got := Of(kept, uidOf("w1")).UnreachableSince; !got.Equal(since) {
		t.Errorf("it is lost since %s, and was since %s", got, since)
	}
}

func TestAPauseAndALossOfANodeOutliveWhatLeavesTheJournal(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2", "w3")
	for _, node := range []string{"", "w2"} {
		drafts, err := fsm.Pause(w.s, w.now, node, "why", 0, person)
		if err != nil {
			t.Fatal(err)
		}
		w.write(drafts...)
	}
	w.gone("w3", "deleted")
	w.lose("w1")
	w.terminating("w1", "d/pod")
	w.decide()
	pauses := w.s.Pauses
	w.retain()
	if diff := cmp.Diff(pauses, w.s.Pauses); diff != "" {
		t.Error(diff)
	}
	if w.node("w3").Present() || len(w.node("w1").Pods) != 1 {
		t.Errorf("w3 %+v, w1 %+v", w.node("w3"), w.node("w1"))
	}
}
