package mirror_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// end puts the ends of actions on disk.
func end(t *testing.T, store *memory.Store, outcome journal.Outcome, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := store.Append(t.Context(), journal.Draft{
			Type: journal.TypeActionEnded, Subject: open(id, 0).Subject, Action: id, Actor: "operator",
			Payload: journal.ActionEnded{Outcome: outcome},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func endedIDs(content mirror.Content) []string {
	var ids []string
	for _, ended := range content.Ended {
		ids = append(ids, ended.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestTheMirrorSaysWhatItsJournalAndThoseBeforeItHaveEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		first, second := memory.New(), memory.New()
		end(t, first, journal.OutcomeDone, "a", "b")
		m := run(t, cluster, "first", mirror.Journal(first))
		m.Update([]journal.ActionRecord{open("c", 1)}, "c1", journal.Carried{})
		synctest.Wait()
		if got := endedIDs(content(t, cluster)); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("the mirror says that %q ended", got)
		}
		end(t, first, journal.OutcomeAbandoned, "c")
		m.Update(nil, "c1", journal.Carried{})
		synctest.Wait()
		got := content(t, cluster)
		if !slices.Equal(endedIDs(got), []string{"a", "b", "c"}) {
			t.Errorf("the mirror says that %q ended", endedIDs(got))
		}
		for _, ended := range got.Ended {
			if ended.ID == "c" && (ended.Outcome != journal.OutcomeAbandoned || ended.UID != "uid-w1" || ended.At.IsZero()) {
				t.Errorf("the mirror says %+v", ended)
			}
		}
		end(t, second, journal.OutcomeDone, "d")
		next := run(t, cluster, "second", mirror.Journal(second))
		if _, err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		next.Update([]journal.ActionRecord{open("e", 1)}, "c1", journal.Carried{})
		synctest.Wait()
		if got := endedIDs(content(t, cluster)); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("after a takeover the mirror says that %q ended", got)
		}
		cluster.SetMirror([]byte(`{"format":1,"journal_id":"third","actions":[]}`))
		if _, err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		next.Update([]journal.ActionRecord{open("e", 2)}, "c1", journal.Carried{})
		synctest.Wait()
		if got := endedIDs(content(t, cluster)); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("past a mirror without ended actions, the mirror says that %q ended", got)
		}
	})
}

func TestOnlyTheNewestEndedActionsAreMirrored(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		store := memory.New()
		for i := range 150 {
			end(t, store, journal.OutcomeDone, fmt.Sprintf("old-%03d", i))
		}
		m := run(t, cluster, "j1", mirror.Journal(store))
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		letPass(1)
		for i := range 150 {
			end(t, store, journal.OutcomeDone, fmt.Sprintf("new-%03d", i))
		}
		m.Update([]journal.ActionRecord{open("a", 2)}, "c1", journal.Carried{})
		letPass(1)
		got := endedIDs(content(t, cluster))
		if len(got) != 200 || !slices.Contains(got, "new-000") || !slices.Contains(got, "new-149") {
			t.Errorf("%d ended actions are mirrored: %q", len(got), got)
		}
	})
}

func TestAnActionThatEndedHereIsKnownByItsIDAndItsNode(t *testing.T) {
	store := memory.New()
	end(t, store, journal.OutcomeCancelled, "a", "b")
	successor := open("b", 1)
	successor.Subject = journal.NodeSubject("w1", "uid-of-its-successor")
	content := mirrorOf("other", open("a", 1), successor, open("c", 1))
	got, err := mirror.AlreadyEnded(t.Context(), store, content)
	if err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q have ended here, %v", got, err)
	}
	drafts, err := mirror.Adopt(content, nil, "own", "c1", mirror.EndedHere(got...))
	if want := []string{"action.adopted b", "action.adopted c"}; err != nil || !slices.Equal(tell(drafts), want) {
		t.Errorf("adopted %q, %v", tell(drafts), err)
	}
}
