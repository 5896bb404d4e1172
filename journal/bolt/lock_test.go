package bolt

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// tryLock locks the lock file as another process would, and lets it go with the
// test. The file of the journal itself stays unlocked.
func tryLock(t *testing.T, path string, how int) error {
	t.Helper()
	file, err := os.OpenFile(path+files.LockSuffix, os.O_RDWR|os.O_CREATE, files.FileMode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
}

// The lock that bbolt takes on its file does not last while the file is replaced.
func TestAWriterHoldsTheLockFileAlsoWhileTheJournalIsReplaced(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 100)...)
	for name, change := range map[string]func() error{
		"after opening":    func() error { return nil },
		"after compaction": func() error { _, _, err := store.Compact(t.Context()); return err },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, how := range []int{syscall.LOCK_EX, syscall.LOCK_SH} {
			if err := tryLock(t, path, how); !errors.Is(err, syscall.EWOULDBLOCK) {
				t.Errorf("%s another process gets the lock (%v)", name, err)
			}
		}
	}
	bolttest.MustClose(t, store)
	reader := mustOpen(t, path, Options{ReadOnly: true})
	if err := tryLock(t, path, syscall.LOCK_EX); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("beside a reader a writer gets the lock (%v)", err)
	}
	bolttest.MustClose(t, reader)
	if err := tryLock(t, path, syscall.LOCK_EX); err != nil {
		t.Errorf("a closed journal is still locked: %v", err)
	}
}

func TestNobodyOpensAJournalWhoseLockFileIsHeld(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, Options{}))
	if err := tryLock(t, path, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"a writer":   func() error { _, err := Open(t.Context(), path, Options{}); return err },
		"a reader":   func() error { _, err := Open(t.Context(), path, Options{ReadOnly: true}); return err },
		"a salvager": func() error { _, _, err := OpenOrSalvage(t.Context(), path, inChild()); return err },
		"a verifier": func() error { _, err := rescue.Verify(path); return err },
	} {
		if err := open(); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
