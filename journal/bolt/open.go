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

// Options say how to open a journal.
type Options struct {
	// ReadOnly opens for inspection. Several readers may share a journal that
	// no EKCO is writing.
	ReadOnly bool
	// Child is the program, with its first arguments, that runs [rescue.Child] with
	// the arguments that follow. When it is set, damaged files are read only in
	// that process, so that nothing in them can bring this one down.
	Child []string
	// OwnPath says that the path is the journal's beyond doubt, as it is in the
	// operator's own pod. Where there was a journal, a file in which nothing of it
	// is left is then not somebody else's, but what became of it.
	OwnPath bool
	// Patience is added to the time that the process may take.
	Patience time.Duration
	// Now replaces the clock, for tests.
	Now func() time.Time
}

const ownDirectory = "EKCO needs a directory it may write, with mode 0700 and of its own user"

// Open opens the journal at path, and creates it, with its directory, when
// there is none. The whole file is verified first; that ends when ctx does.
//
// The error wraps [journal.ErrLocked] when another process has the journal,
// [journal.ErrDamaged] when verification failed (see [OpenOrSalvage]),
// [journal.ErrUnverified] when it could not be verified,
// [journal.ErrNotAJournal] when the file is something else, or has no content
// and nothing beside it says that a journal was there,
// [journal.ErrOtherFormat] when a newer EKCO wrote it, and
// [journal.ErrUnwritable] when it cannot be created.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	around := rescue.LookAround(path)
	lock, err := prepare(path, options)
	if err != nil {
		return nil, err
	}
	store, err := openLocked(ctx, path, options, lock, around)
	if err != nil {
		return nil, around.GiveUp(path, lock, options.ReadOnly, err)
	}
	return store, nil
}

// prepare makes the directory and takes the lock.
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

// openLocked expects the lock to be held. Until the file is known to be a
// journal, nothing is changed.
func openLocked(ctx context.Context, path string, options Options, lock *os.File, around rescue.Surroundings) (*Store, error) {
	exists, err := files.Regular(path)
	switch {
	case err != nil || exists:
	case options.ReadOnly:
		err = fmt.Errorf("open journal %s: %w", path, fs.ErrNotExist)
	default:
		err = createAnew(path, options)
	}
	if err == nil {
		_, err = rescue.Inspect(ctx, path, options.reading())
	}
	if err != nil {
		return nil, around.Judge(path, options.OwnPath, err)
	}
	if !options.ReadOnly {
		if err := tidy(path); err != nil {
			return nil, err
		}
	}
	return start(path, options, lock)
}

// tidy brings a journal's directory to where an EKCO that was killed would have
// brought it: what was not finished goes, and the names that were given are durable.
func tidy(path string) error {
	if err := files.RemoveUnfinished(path); err != nil {
		return err
	}
	if err := files.SyncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: sync the directory of journal %s: %w", journal.ErrUnwritable, path, err)
	}
	return nil
}

func createAnew(path string, options Options) error {
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

// create builds a whole journal, with what shall follow its first event. It is
// for a file that gets its own name afterwards.
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

// reading is how the file is read before it is known to be sound.
func (o Options) reading() rescue.Options {
	return rescue.Options{Child: o.Child, Patience: o.Patience, Now: o.clock()}
}
