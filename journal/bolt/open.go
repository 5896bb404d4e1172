package bolt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/replicatedhq/ekco/journal"
)

// Options say how to open a journal.
type Options struct {
	// ReadOnly opens for inspection. Several readers may share a journal that
	// no EKCO is writing.
	ReadOnly bool
	// Child is the program, with its first arguments, that runs [Child] with
	// the arguments that follow. When it is set, damaged files are read only in
	// that process, so that nothing in them can bring this one down.
	Child []string
	// Now replaces the clock, for tests.
	Now func() time.Time
}

const (
	directoryMode = 0o700
	fileMode      = 0o600
	freshSuffix   = ".new"
)

// Open opens the journal at path, and creates it, with its directory, when
// there is none. The whole file is verified first.
//
// The error wraps [journal.ErrLocked] when another process has the journal,
// [journal.ErrDamaged] when verification failed (see [OpenOrSalvage]),
// [journal.ErrNotAJournal] when the file is something else, or has no content
// and nothing beside it says that a journal was there,
// [journal.ErrOtherFormat] when a newer EKCO wrote it, and
// [journal.ErrUnwritable] when it cannot be created.
func Open(path string, options Options) (*Store, error) {
	around := lookAround(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, err
	}
	store, err := openLocked(path, options, lock, around)
	if err != nil {
		return nil, around.giveUp(path, lock, options.ReadOnly, err)
	}
	return store, nil
}

// prepare makes the directory and takes the lock.
func prepare(path string, options Options) (*os.File, error) {
	if !options.ReadOnly {
		if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
			return nil, fmt.Errorf("make the directory of journal %s: %w: %w", path, journal.ErrUnwritable, err)
		}
	}
	lock, err := acquire(path, options.ReadOnly)
	if errors.Is(err, journal.ErrLocked) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; EKCO needs a directory it may write, with mode 0700 and of its own user",
			journal.ErrUnwritable, err)
	}
	return lock, nil
}

// openLocked expects the lock to be held. Until the file is known to be a
// journal, nothing is changed.
func openLocked(path string, options Options, lock *os.File, around surroundings) (*Store, error) {
	exists, err := regular(path)
	if err == nil && !exists && !options.ReadOnly {
		err = createAnew(path, options)
	}
	if err == nil {
		_, err = inspect(context.Background(), path, options)
	}
	if err != nil {
		return nil, around.judge(path, err)
	}
	if !options.ReadOnly {
		if err := clean(path); err != nil {
			return nil, err
		}
	}
	return start(path, options, lock)
}

func createAnew(path string, options Options) error {
	if err := clean(path); err != nil {
		return err
	}
	return createIfMissing(path, options)
}

// clean removes what an interrupted creation or compaction left behind.
func clean(path string) error {
	for _, suffix := range []string{freshSuffix, compactSuffix, salvageSuffix, exportSuffix} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove unfinished %s: %w: %w", path+suffix, journal.ErrUnwritable, err)
		}
	}
	return nil
}

func createIfMissing(path string, options Options) error {
	_, err := os.Lstat(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open journal %s: %w", path, err)
	}
	if err := create(path, options.clock()); err != nil {
		return fmt.Errorf("create journal %s: %w: %w", path, journal.ErrUnwritable, err)
	}
	return nil
}

// create builds a whole journal under another name before it gets its own.
func create(path string, now func() time.Time) error {
	id := newIdentity()
	event, err := journal.CreatedDraft(id.JournalID).Event()
	if err != nil {
		return err
	}
	fresh := path + freshSuffix
	db, err := openFile(fresh, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := createTables(tx, id); err != nil {
			return err
		}
		t, err := tablesOf(tx)
		if err != nil {
			return err
		}
		end := appender{tables: t}
		if err := end.append(&event, now()); err != nil {
			return err
		}
		return end.finish()
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return replace(fresh, path)
}

func newIdentity() identity {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return identity{Format: journal.Format, JournalID: hex.EncodeToString(random[:])}
}

// replace gives a synced file its final name, durably.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(to))
}

func syncDirectory(name string) error {
	directory, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func openFile(path string, readOnly bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{
		ReadOnly: readOnly, Timeout: lockWait, FreelistType: bbolt.FreelistMapType,
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, lockedError(path, path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func (o Options) clock() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}
