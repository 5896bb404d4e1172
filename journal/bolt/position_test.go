package bolt

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
)

// A mirror names an event of the journal. That the journal lost its newest events
// must never be said of one that lost none, whatever EKCO did to its file.
func TestAPositionStaysOnTheChainWhateverEKCODoesToTheFile(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path)
	var positions []journal.Position
	for _, event := range bolttest.MustRead(t, store, journal.Query{}) {
		positions = append(positions, journal.Position{Seq: event.Seq, Hash: event.Hash})
	}
	check := func(after string) {
		t.Helper()
		for _, position := range positions {
			if there, err := journal.Contains(t.Context(), store, position); err != nil || !there {
				t.Fatalf("after %s: event %d is there: %v, %v", after, position.Seq, there, err)
			}
		}
	}
	check("appends")
	exported, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-5 * time.Hour)})
	if err != nil || exported.Events == 0 {
		t.Fatalf("retained %+v, %v", exported, err)
	}
	check("retention")
	if _, _, err := store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("compaction")
	bolttest.MustClose(t, store)
	store = mustOpen(t, path, inChild())
	check("a restart")
	if _, err := store.Import(t.Context(), exported.File, ""); err != nil {
		t.Fatal(err)
	}
	check("an import")
	end, err := journal.End(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	forged := journal.Position{Seq: positions[100].Seq, Hash: positions[101].Hash}
	beyond := journal.Position{Seq: end.Seq + 1, Hash: end.Hash}
	for _, position := range []journal.Position{forged, beyond} {
		if there, err := journal.Contains(t.Context(), store, position); err != nil || there {
			t.Errorf("event %d, which is not there, is: %v, %v", position.Seq, there, err)
		}
	}
}
