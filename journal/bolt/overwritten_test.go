package bolt

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
)

// TestACopyInTheSameFileIsNotChanged: "cp" writes into the file that EKCO has open, whose inode stays.
func TestACopyInTheSameFileIsNotChanged(t *testing.T) {
	for name, events := range map[string]struct{ there, since int }{
		"an older copy": {0, 3}, "a longer journal": {5, 1}, "another journal as long": {1, 1},
	} {
		for _, repair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, repair %t", name, repair), func(t *testing.T) {
				path := bolttest.NewPath(t)
				store := mustOpen(t, path, Options{})
				other, from := store, path
				if events.there > 0 {
					from = bolttest.NewPath(t)
					other = mustOpen(t, from, Options{})
					bolttest.MustAppend(t, other, bolttest.ObservedMany("a", events.there)...)
				}
				was, err := other.Stat(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				content, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				bolttest.MustAppend(t, store, bolttest.ObservedMany("b", events.since)...)
				overwrite(t, path, content)
				if repair { // as after a failed write
					if err := store.repair(); !errors.Is(err, journal.ErrFileReplaced) {
						t.Errorf("the repair returns %v", err)
					}
				}
				for range 2 {
					if _, err := store.Append(t.Context(), bolttest.Observed("c")); !errors.Is(err, journal.ErrFileReplaced) {
						t.Errorf("an append returns %v", err)
					}
				}
				bolttest.MustClose(t, store)
				again := mustOpen(t, path, Options{})
				if stat, err := again.Stat(t.Context()); err != nil || stat.LastSeq != was.LastSeq || stat.JournalID != was.JournalID {
					t.Errorf("the file has %+v, want %+v: %v", stat, was, err)
				}
			})
		}
	}
}

// overwrite writes into a file without truncating it first, because a mapped page that is gone would end the test.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(content, 0)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestACompactionDoesNotReplaceARestoredFile(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	fresh, restored := path+files.CompactSuffix, path+".restored"
	for _, file := range []string{fresh, restored} {
		if err := os.WriteFile(file, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(restored, path); err != nil {
		t.Fatal(err)
	}
	if err := store.swap(fresh); !errors.Is(err, journal.ErrFileReplaced) {
		t.Errorf("the end of a compaction returns %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != restored {
		t.Errorf("the file has %q, %v", content, err)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("the copy stays on the disk")
	}
}
