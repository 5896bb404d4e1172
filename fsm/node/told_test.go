package node

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// reasonOf returns the reason of the only transition that is decided.
func (w *world) reasonOf(want string) string {
	w.t.Helper()
	for _, event := range w.wantDecided(want).Events {
		if moved, is := event.Payload.(journal.NodeTransitioned); is {
			return moved.Reason
		}
	}
	return ""
}

func TestWhoDeletedANodeIsNotKnownWhileTheJournalLacksWhatHappened(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2")
	last := w.now
	w.pass(time.Hour)
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{Problem: "page 7", Recovered: 2})
	if from := w.s.Journal.LostFrom; !from.Equal(last) {
		t.Errorf("lost from %s, want the time of the last event, %s", from, last)
	}
	w.pass(time.Minute)
	first := w.s.Journal.LostSeq
	w.tell(journal.TypeJournalOutdated, journal.JournalSubject, journal.JournalOutdated{LastSeq: w.s.Seq})
	if from, seq := w.s.Journal.LostFrom, w.s.Journal.LostSeq; !from.Equal(last) || seq != first {
		t.Errorf("a second loss moved the first to %s, told by event %d", from, seq)
	}
	w.gone("w1", "absent at start")
	if reason := w.reasonOf("node.transitioned w1: Healthy to Gone"); !strings.Contains(reason, "does not know by whom") {
		t.Errorf("reason: %q", reason)
	}
	w.cluster("w3") // seen for the first time since
	w.decide()
	w.gone("w3", "deleted")
	if reason := w.reasonOf("node.transitioned w3: Healthy to Gone"); reason != "not deleted by EKCO: deleted" {
		t.Errorf("of a node that was seen since the loss: %q", reason)
	}
	w.tell(journal.TypeJournalAccepted, journal.JournalSubject, journal.JournalAccepted{})
	if !w.s.Journal.LostFrom.IsZero() || w.s.Journal.LostSeq != 0 {
		t.Errorf("accepted, and still lost from %s, told by event %d", w.s.Journal.LostFrom, w.s.Journal.LostSeq)
	}
	w.observe("w1") // it was registered again under its UID
	w.decide()
	w.gone("w1", "deleted")
	w.gone("w2", "deleted")
	for _, event := range w.decide().Events {
		if moved, is := event.Payload.(journal.NodeTransitioned); is && !strings.Contains(moved.Reason, "not deleted by EKCO") {
			t.Errorf("%s: %q", event.Subject.Name, moved.Reason)
		}
	}
}

func TestSinceWhenEventsAreMissingIsKnownOnlyWhereTheFileEndedThere(t *testing.T) {
	for name, later := range map[string]int{"the file ended there": 0, "the file went on without them": 1} {
		w := newWorld(t)
		w.cluster("w1")
		kept, last := w.s.Seq, w.now
		for range later {
			w.pass(time.Hour)
			w.start()
		}
		w.pass(time.Hour)
		w.tell(journal.TypeJournalOutdated, journal.JournalSubject, journal.JournalOutdated{LastSeq: kept})
		if later > 0 {
			last = time.Time{}
		}
		if from := w.s.Journal.LostFrom; !from.Equal(last) {
			t.Errorf("%s: lost from %s, want %s", name, from, last)
		}
		if seq := w.s.Journal.LostSeq; seq != w.s.Seq {
			t.Errorf("%s: the loss is told by event %d, want %d", name, seq, w.s.Seq)
		}
		w.gone("w1", "deleted")
		if reason := w.reasonOf("node.transitioned w1: Healthy to Gone"); !strings.Contains(reason, "does not know by whom") || strings.Contains(reason, "0001") {
			t.Errorf("%s: %q", name, reason)
		}
	}
}

func TestAfterACancelTheReasonIsTheCancel(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	id := w.mustAdmit(ask("w1")).Action
	w.decide()
	w.wantState("w1", Purging)
	w.end(id, journal.OutcomeCancelled)
	if reason := w.reasonOf("node.transitioned w1: Purging to Healthy"); reason != id+" was cancelled, and the node is reachable" {
		t.Errorf("reason: %q", reason)
	}
}

func TestOnlyAReadyNodeLeavesTimeToCancelItsPurge(t *testing.T) {
	for name, test := range map[string]struct {
		lost, unasked, want bool
	}{
		"ready and unasked": {false, true, true}, "ready and asked": {false, false, false}, "lost and unasked": {true, true, false},
	} {
		w := newWorld(t)
		w.cluster("w1")
		if test.lost {
			w.lose("w1")
			w.decide()
		}
		request := ask("w1")
		request.Unasked = test.unasked
		record := w.s.Actions[w.mustAdmit(request).Action]
		if got := journal.PurgeInputOf(record.Request).Unasked; got != test.want {
			t.Errorf("%s: unasked is %v", name, got)
		}
	}
}
