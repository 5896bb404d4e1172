package node

import (
	"testing"
	"time"

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
	w.wantDecided("node.transitioned w1: Healthy to Unknown", "policy.refused w1: purge-node by TriedBefore")
}
