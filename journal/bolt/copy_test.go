package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

func TestACopyOfAJournalInUseVerifiesAndEndsWhereItDid(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(t.Context(), filepath.Join(dir, "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	events, err := store.Append(t.Context(), journal.Draft{
		Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: "operator",
		Payload: journal.OperatorStopped{Reason: "test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	duplicate := filepath.Join(dir, "copy.db")
	if err := store.CopyFile(t.Context(), duplicate); err != nil {
		t.Fatal(err)
	}
	report, err := rescue.Verify(duplicate)
	if err != nil {
		t.Fatal(err)
	}
	if report.LastSeq != events[0].Seq {
		t.Errorf("the copy ends at %d, want %d", report.LastSeq, events[0].Seq)
	}
	if info, err := os.Stat(duplicate); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v, %v", info.Mode(), err)
	}
}
