package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
)

func TestNothingIsAppendedToAFileThatIsGone(t *testing.T) {
	for name, lose := range map[string]func(path, aside string) error{
		"deleted": os.Rename,
		"replaced": func(path, aside string) error {
			if err := os.Rename(path, aside); err != nil {
				return err
			}
			content, err := os.ReadFile(aside)
			if err != nil {
				return err
			}
			return os.WriteFile(path, content, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			store, err := bolt.Open(t.Context(), path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			write := func() error {
				_, err := store.Append(t.Context(), bolttest.Observed("worker-1"))
				return err
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := store.Compact(t.Context()); err != nil { // EKCO itself may replace the file
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if err := lose(path, path+".aside"); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second attempt repairs the file first
				if err := write(); !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, journal.ErrFileReplaced) {
					t.Errorf("an append returns %v", err)
				}
			}
			if _, err := os.Stat(path); name == "deleted" && err == nil {
				t.Error("a new file was created")
			}
			if stat, err := store.Stat(t.Context()); err != nil || stat.LastSeq == 0 || stat.Bytes == 0 || !stat.Replaced {
				t.Errorf("the store's stat is %+v, %v", stat, err)
			}
			if err := os.Rename(path+".aside", path); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Errorf("after the file was restored: %v", err)
			}
		})
	}
}
