package node

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// purgeID is the id of the purge of w1 that a fresh journal with this id gives.
func purgeID(t *testing.T, journalID string, before ...journal.Event) string {
	t.Helper()
	w := newWorld(t)
	w.s.Apply(journal.Event{
		Seq: w.s.Seq + 1, Type: journal.TypeJournalCreated, Version: 1, Subject: journal.JournalSubject,
		Payload: []byte(`{"format":1,"journal_id":"` + journalID + `"}`),
	})
	for _, event := range before {
		event.Seq = w.s.Seq + 1
		w.s.Apply(event)
	}
	w.s.Apply(journal.Event{
		Seq: w.s.Seq + 1, Type: journal.TypeNodeObserved, Version: 1, Subject: journal.NodeSubject("w1", uidOf("w1")),
		Payload: []byte(`{"role":"worker"}`),
	})
	admission, err := Admit(w.s, w.p.whole(), w.now, ask("w1"))
	if err != nil {
		t.Fatal(err)
	}
	return admission.Action
}

func TestTwoFreshJournalsGiveTheirActionsOfOneNodeDifferentIDs(t *testing.T) {
	one, other := purgeID(t, "3f9ad0"), purgeID(t, "77e1c2")
	if one == other {
		t.Errorf("both give %s", one)
	}
	if !strings.HasPrefix(one, "purge-w1-") || !strings.HasSuffix(one, "-3f9a") {
		t.Errorf("the id is %s, want the action, the node and the start of the journal's id", one)
	}
}

func TestAJournalThatLostItsNewestEventsDoesNotGiveTheirActionsIDsAgain(t *testing.T) {
	accepted := journal.Event{Type: journal.TypeJournalAccepted, Version: 1, Subject: journal.JournalSubject, Payload: []byte(`{}`)}
	whole := purgeID(t, "3f9ad0", accepted, accepted)
	for _, lost := range []journal.Type{journal.TypeJournalSalvaged, journal.TypeJournalOutdated} {
		cut := purgeID(t, "3f9ad0", journal.Event{
			Type: lost, Version: 1, Subject: journal.JournalSubject, Payload: []byte(`{}`), Hash: journal.Hash{0xab, 0xcd},
		}, accepted)
		if whole == cut {
			t.Errorf("before and after %s an action has the id %s", lost, whole)
		}
	}
}
