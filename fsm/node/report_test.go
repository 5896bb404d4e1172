package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// reporting adds a kind of action about nodes that is no matter of their loss.
func reporting() fsm.Capability {
	return fsm.Capability{Kinds: []fsm.ActionKind{{Name: journal.ActionReportNode, Verb: "report", Machine: Machine, Manual: true}}}
}

// newReporting returns a world that knows it.
func newReporting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.s = fsm.NewState(Capability(), reporting())
	for _, event := range w.events {
		w.s.Apply(event)
	}
	return w
}

func (w *world) askReport(node string) (fsm.Admission, error) {
	w.t.Helper()
	admission, err := fsm.Admit(w.s, w.p.whole(), w.now, fsm.Request{Kind: journal.ActionReportNode, Name: node, Actor: "cli:root@h"})
	w.write(admission.Events...)
	return admission, err
}

// TestAnActionThatIsNotAboutALossIsLeftAloneByIt: neither does it begin nor end with it.
func TestAnActionThatIsNotAboutALossIsLeftAloneByIt(t *testing.T) {
	w := newReporting(t)
	w.cluster("w1")
	admission, err := w.askReport("w1")
	if err != nil || admission.Action == "" {
		t.Fatal(err)
	}
	w.wantDecided()
	w.wantState("w1", Healthy)
	w.lose("w1")
	w.wantDecided("node.transitioned w1: Healthy to Unknown")
	w.observe("w1")
	w.wantDecided("node.transitioned w1: Unknown to Healthy")
	if again, err := w.askReport("w1"); err != nil || !again.Resumed || again.Action != admission.Action {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	w.end(admission.Action, journal.OutcomeDone)
	w.wantDecided()
	w.wantState("w1", Healthy)
	if len(w.s.Problems) > 0 {
		t.Errorf("problems: %q", w.s.Problems)
	}
}

func TestAnActionAboutANodeEndsWithIt(t *testing.T) {
	w := newReporting(t)
	w.cluster("w1", "w2")
	for _, node := range []string{"w1", "w2"} {
		if _, err := w.askReport(node); err != nil {
			t.Fatal(err)
		}
	}
	w.gone("w1", "deleted")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Healthy to Gone")
	w.observeUID("w2", "uid-new")
	w.wantDecided("action.cancelling w2", "node.transitioned w2: Healthy to Gone")
}

func TestWhatIsNoPurgeIsOnlyAboutNodesThatAreThere(t *testing.T) {
	w := newReporting(t)
	w.cluster("worker-1")
	w.gone("worker-1", "deleted")
	w.decide()
	w.observe("worker-2")
	for _, node := range []string{"worker-1", "worker-3"} {
		_, err := w.askReport(node)
		if !errors.Is(err, fsm.ErrUnknown) || !strings.Contains(err.Error(), "worker-2") || strings.Contains(err.Error(), "mean worker-1") {
			t.Errorf("of %s: %v", node, err)
		}
	}
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{DamagedFile: "f"})
	if _, err := w.askReport("worker-2"); !errors.Is(err, fsm.ErrRefused) {
		t.Errorf("in safe mode: %v", err)
	}
}
