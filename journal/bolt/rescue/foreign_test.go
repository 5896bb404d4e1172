package rescue_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// foreignFiles are what a mistyped path can lead to.
func foreignFiles(t *testing.T) map[string][]byte {
	t.Helper()
	export, err := os.ReadFile("../../../testdata/journals/format-1.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"a kubeconfig":               []byte("apiVersion: v1\nkind: Config\nclusters: []\n"),
		"one byte":                   []byte("\n"),
		"a larger text":              bytes.Repeat([]byte("The quick brown fox. "), 10_000),
		"an export":                  bytes.Repeat(export, 1+20_000/len(export)),
		"an empty file":              {},
		"zeroes":                     make([]byte, 100_000),
		"a database of someone else": otherDatabase(t),
	}
}

// otherDatabase is bbolt's, with buckets as etcd has them.
func otherDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(path, files.FileMode, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta", "members"} {
			bucket, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			if err := bucket.Put([]byte("consistent_index"), []byte("12345678")); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func beside(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestAFileThatIsNotAJournalIsRefusedAndNotTouched(t *testing.T) {
	openers := map[string]func(path string) error{
		"OpenOrSalvage": func(path string) error { _, _, err := bolt.OpenOrSalvage(t.Context(), path, inChild()); return err },
		"in process": func(path string) error {
			_, _, err := bolt.OpenOrSalvage(t.Context(), path, bolt.Options{})
			return err
		},
		"Open": func(path string) error { _, err := bolt.Open(t.Context(), path, inChild()); return err },
		"read-only": func(path string) error {
			_, err := bolt.Open(t.Context(), path, bolt.Options{ReadOnly: true})
			return err
		},
		"Verify": func(path string) error { _, err := rescue.Verify(path); return err },
	}
	for name, content := range foreignFiles(t) {
		for how, open := range openers {
			t.Run(name+", "+how, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "config")
				leftover := path + files.FreshSuffix // of its owner, not of EKCO
				for file, content := range map[string][]byte{path: content, leftover: []byte("mine")} {
					if err := os.WriteFile(file, content, 0o640); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 { // the first refusal leaves no trace that decides the second
					err := open(path)
					want := path + " is not an EKCO journal; give another path or move the file elsewhere"
					if !errors.Is(err, journal.ErrNotAJournal) || errors.Is(err, journal.ErrDamaged) || err.Error() != want {
						t.Errorf("the error is %v, want %s", err, want)
					}
				}
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
					t.Errorf("the file was touched: %v", err)
				}
				if names := beside(t, path); !slices.Equal(names, []string{"config", "config" + files.FreshSuffix}) {
					t.Errorf("the directory has %q", names)
				}
			})
		}
	}
}

func TestADirectoryAndAPipeAreNoJournals(t *testing.T) {
	for _, path := range []string{t.TempDir() + "/directory", t.TempDir() + "/pipe"} {
		if strings.HasSuffix(path, "directory") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := bolt.OpenOrSalvage(t.Context(), path, inChild()); !errors.Is(err, journal.ErrNotAJournal) {
			t.Errorf("open of %s: %v", path, err)
		}
		if _, err := os.Lstat(path + files.LockSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a lock lies beside %s: %v", path, err)
		}
	}
}

func TestAJournalThatWasEmptiedIsDamagedWhereSomethingSaysItWasOne(t *testing.T) {
	for trace, name := range map[string]string{
		"its lock":         "journal.db" + files.LockSuffix,
		"an export":        "journal-1-400" + files.ExportEnding,
		"an earlier wreck": "journal.db" + files.DamagedSuffix + "20260102T030405Z",
	} {
		for kind, content := range map[string][]byte{
			"empty": {}, "zeroed": make([]byte, 100_000), "cut within its first bytes": {0, 0, 0, 0, 0, 0, 0, 0, 4, 0},
		} {
			t.Run(kind+", beside "+trace, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "journal.db")
				for file, content := range map[string][]byte{path: content, filepath.Join(filepath.Dir(path), name): {}} {
					if err := os.WriteFile(file, content, files.FileMode); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := rescue.Verify(path); !errors.Is(err, journal.ErrDamaged) {
					t.Errorf("verify says %v", err)
				}
				store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
				if err != nil {
					t.Fatal(err)
				}
				defer bolttest.MustClose(t, store)
				if salvaged == nil || salvaged.Recovered != 0 {
					t.Fatalf("salvaged %+v", salvaged)
				}
				if aside, err := os.ReadFile(salvaged.DamagedFile); err != nil || !bytes.Equal(aside, content) {
					t.Errorf("the emptied file was not kept: %v", err)
				}
			})
		}
	}
}

func TestAJournalWithoutMetaPagesIsKnownByItsRecords(t *testing.T) {
	content, _, _ := damageJournal(t)
	copy(content, bytes.Repeat([]byte("garbage "), 2*damagePage/8))
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, content, files.FileMode); err != nil {
		t.Fatal(err)
	}
	store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
	if err != nil {
		t.Fatal(err)
	}
	defer bolttest.MustClose(t, store)
	if salvaged == nil || salvaged.Recovered == 0 {
		t.Errorf("salvaged %+v", salvaged)
	}
}

// A lock that lies there by chance must not have a command move a file away whose
// path was mistyped.
func TestACommandLeavesAForeignFileAloneEvenBesideALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	content := []byte("apiVersion: v1\nkind: Config\nclusters: []\n")
	for file, content := range map[string][]byte{path: content, path + files.LockSuffix: {}} {
		if err := os.WriteFile(file, content, files.FileMode); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := bolt.OpenOrSalvage(t.Context(), path, inChild()); !errors.Is(err, journal.ErrNotAJournal) {
		t.Errorf("opening it: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the file was touched: %v", err)
	}
}
