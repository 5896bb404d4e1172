package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// Options configure the opening of a journal.
type Options struct {
	// ReadOnly opens for reading. Several readers may share a journal while no EKCO writes it.
	ReadOnly bool
	// Child is the command line of a program that calls [rescue.Child] with the arguments that EKCO adds. If it is set,
	// EKCO reads a file that may be damaged only in such a process, so that the file cannot crash EKCO itself.
	Child []string
	// OwnPath says that only EKCO uses the path, as in the operator's own pod. If there was a journal at the path, Open
	// then treats a file without any of a journal's content as a damaged journal, and not as another program's file.
	OwnPath bool
	// ExtraTimeout is added to the timeout of the process in Child.
	ExtraTimeout time.Duration
	// Now replaces the clock in tests; nil means time.Now.
	Now func() time.Time
}

const ownDirectory = "EKCO needs a writable directory with mode 0700 that its own user owns"

// Open verifies the whole file at path and opens it. If there is no file, it creates a journal, also its directory. ctx
// limits the time of the verification.
//
// The error wraps [journal.ErrLocked] if another process has the journal open, [journal.ErrDamaged] if the file is
// damaged (see [OpenOrSalvage]), [journal.ErrUnverified] if the file could not be verified, [journal.ErrOtherFormat] if
// a newer EKCO wrote it, and [journal.ErrUnwritable] if it cannot be created. The error wraps [journal.ErrNotAJournal]
// if the file is not a journal, or if it has no content and no file next to it shows that there was a journal.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	neighbours := rescue.FindNeighbourFiles(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, err
	}
	store, err := openLocked(ctx, path, options, lock, neighbours)
	if err != nil {
		return nil, neighbours.ReleaseLock(path, lock, options.ReadOnly, err)
	}
	return store, nil
}

// prepare creates the journal's directory and acquires the lock.
func prepare(path string, options Options) (*os.File, error) {
	if !options.ReadOnly {
		if err := os.MkdirAll(filepath.Dir(path), files.DirectoryMode); err != nil {
			return nil, fmt.Errorf("make the directory of journal %s: %w: %w; %s", path, journal.ErrUnwritable, err, ownDirectory)
		}
	}
	lock, err := files.Acquire(path, options.ReadOnly)
	if errors.Is(err, journal.ErrLocked) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s", journal.ErrUnwritable, err, ownDirectory)
	}
	return lock, nil
}

// openLocked opens or creates the journal. The caller must hold the lock. openLocked does not change an existing file
// before it knows that the file is a journal.
func openLocked(ctx context.Context, path string, options Options, lock *os.File, neighbours rescue.NeighbourFiles) (*Store, error) {
	exists, err := files.Regular(path)
	switch {
	case err != nil || exists:
	case options.ReadOnly:
		err = fmt.Errorf("open journal %s: %w", path, fs.ErrNotExist)
	default:
		err = createNew(path, options)
	}
	if err == nil {
		_, err = rescue.Inspect(ctx, path, options.rescueOptions())
	}
	if err != nil {
		return nil, neighbours.ClassifyError(path, options.OwnPath, err)
	}
	if !options.ReadOnly {
		if err := cleanUp(path); err != nil {
			return nil, err
		}
	}
	return start(path, options, lock)
}

// cleanUp cleans up after an EKCO that was killed: it removes unfinished files, and syncs the directory, because a
// rename may not be on disk yet.
func cleanUp(path string) error {
	if err := files.RemoveUnfinished(path); err != nil {
		return err
	}
	if err := files.SyncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: sync the directory of journal %s: %w", journal.ErrUnwritable, path, err)
	}
	return nil
}

func createNew(path string, options Options) error {
	if err := files.RemoveUnfinished(path); err != nil {
		return err
	}
	return createIfMissing(path, options)
}

func createIfMissing(path string, options Options) error {
	_, err := os.Lstat(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open journal %s: %w", path, err)
	}
	err = create(path+files.FreshSuffix, options.clock())
	if err == nil {
		err = files.Replace(path+files.FreshSuffix, path)
	}
	if err != nil {
		return fmt.Errorf("create journal %s: %w: %w", path, journal.ErrUnwritable, err)
	}
	return nil
}

// create writes a complete journal to a file at path, with journal.created and the events rest. The caller then renames
// the file.
func create(path string, now func() time.Time, rest ...journal.Draft) error {
	id := layout.NewIdentity()
	db, err := files.OpenDB(path, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := layout.CreateTables(tx, id); err != nil {
			return err
		}
		t, err := layout.TablesOf(tx)
		if err != nil {
			return err
		}
		end := layout.Appender{Tables: t}
		for _, draft := range append([]journal.Draft{journal.CreatedDraft(id.JournalID)}, rest...) {
			event, err := draft.Event()
			if err == nil {
				err = end.Append(&event, now())
			}
			if err != nil {
				return err
			}
		}
		return end.Finish()
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (o Options) clock() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

// rescueOptions returns the options for reading a file that may be damaged.
func (o Options) rescueOptions() rescue.Options {
	return rescue.Options{Child: o.Child, ExtraTimeout: o.ExtraTimeout, Now: o.clock()}
}
