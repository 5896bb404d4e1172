package bolt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// prunedFiles returns the names of the files whose removal is on record.
func prunedFiles(ctx context.Context, store *Store) (names []string, err error) {
	for event, err := range store.Read(ctx, journal.Query{Types: []journal.Type{journal.TypeJournalPruned}}) {
		if err != nil {
			return nil, err
		}
		payload, err := event.Decode()
		if err != nil {
			return nil, err
		}
		names = append(names, filepath.Base(payload.(*journal.JournalPruned).File))
	}
	return names, nil
}

func TestPruneKeepsTheNewestOfEachKind(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	damaged := func(days int) string {
		return "journal.db.damaged-" + now.Add(-time.Duration(days)*day).Format("20060102T150405Z")
	}
	// The numbers say what is newer: the times of the files are how many days they are old.
	ours := map[string]int{
		"journal-2-9.ndjson.gz": 30, "journal-10-90.ndjson.gz": 1, "journal-9-100.ndjson.gz": 40, "journal-9-100.2.ndjson.gz": 90,
		damaged(50): 1, damaged(20): 1, damaged(20) + "-2": 1, damaged(20) + "-10": 1,
	}
	others := []string{
		"journal.db.lock", "journal-1-2-9.ndjson.gz", "journal-of-may.ndjson.gz", "other-1-9.ndjson.gz", "journal-1-5000.ndjson.gz",
		"journal.db.damaged-mine", "journal.db.damaged-20261399T000000Z", "other.db.damaged-20200101T000000Z", "journal.db.of-cluster-x-20200101T000000Z",
	}
	for name, test := range map[string]struct {
		days  int
		bytes int64
		want  []string
	}{
		"all may stay":            {100, 400, nil},
		"no limit of the size":    {100, 0, nil},
		"the oldest are too old":  {25, 400, []string{"journal-2-9.ndjson.gz", damaged(50)}},
		"the first young one":     {10, 400, []string{"journal-2-9.ndjson.gz", damaged(50), damaged(20), damaged(20) + "-2"}},
		"each kind has its limit": {100, 200, []string{"journal-2-9.ndjson.gz", "journal-10-90.ndjson.gz", damaged(50), damaged(20)}},
		"the newest is too large": {100, 10, []string{
			"journal-2-9.ndjson.gz", "journal-10-90.ndjson.gz", "journal-9-100.ndjson.gz", damaged(50), damaged(20), damaged(20) + "-2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := bolttest.NewPath(t)
			store := mustOpen(t, path, Options{})
			defer bolttest.MustClose(t, store)
			bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 200)...)
			dir := filepath.Dir(path)
			write := func(file string, days int) {
				file, at := filepath.Join(dir, file), now.Add(-time.Duration(days)*day)
				if err := os.WriteFile(file, make([]byte, 100), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(file, at, at); err != nil {
					t.Fatal(err)
				}
			}
			for file, days := range ours {
				write(file, days)
			}
			for _, file := range others {
				write(file, 1000)
			}
			before := names(t, dir)
			if err := store.Prune(t.Context(), PruneOptions{Before: now.Add(-time.Duration(test.days) * day), MaxBytes: test.bytes}); err != nil {
				t.Fatal(err)
			}
			removed := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(names(t, dir), name) })
			recorded, err := prunedFiles(t.Context(), store)
			if err != nil || !slices.Equal(recorded, test.want) {
				t.Errorf("recorded are %q, %v; want %q", recorded, err, test.want)
			}
			slices.Sort(recorded)
			if !slices.Equal(removed, recorded) {
				t.Errorf("removed are %q, recorded %q", removed, recorded)
			}
		})
	}
}

func TestAnExportOfTheSameRangeHasANameOfItsOwn(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	defer bolttest.MustClose(t, store)
	bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 200)...)
	for n := range 3 {
		name, err := store.exportRange(t.Context(), 2, 9)
		if err != nil {
			t.Fatal(err)
		}
		found, err := store.aside(files.ExportBase(path), exportSuffixPattern, 2, 1, 3)
		if err != nil || len(found) != n+1 || found[n].File != name {
			t.Errorf("%s is not the newest of %s, %v", name, fmt.Sprint(found), err)
		}
	}
}
