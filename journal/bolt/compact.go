package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// compactTxBytes limits how many bytes one transaction of a compaction writes.
const compactTxBytes = 4 << 20

// Compact copies the journal into a new file without free pages, replaces the old file by the new one, and returns the
// sizes of both in bytes. During the copy, reads continue, and appends and other writes wait. The disk needs enough
// free space for a second copy of the journal's content.
func (s *Store) Compact(ctx context.Context) (before, after int64, err error) {
	err = s.submit(ctx, &write{exclusive: func() error {
		before, after, err = s.compact()
		return err
	}})
	if err != nil {
		return 0, 0, fmt.Errorf("compact journal %s: %w", s.path, err)
	}
	return before, after, nil
}

func (s *Store) compact() (before, after int64, err error) {
	fresh := s.path + files.CompactSuffix
	if before, err = fileSize(s.path); err != nil {
		return 0, 0, err
	}
	if err := copyTo(s.db, fresh); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", journal.ErrUnwritable, errors.Join(err, os.Remove(fresh)))
	}
	if err := rescue.CheckFile(fresh); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("the copy is damaged, and the journal is unchanged: %w", err), os.Remove(fresh))
	}
	if err := s.swap(fresh); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", journal.ErrUnwritable, err)
	}
	after, err = fileSize(s.path)
	return before, after, err
}

// swap replaces the journal's file by the file fresh, while no other goroutine uses it. If the new file cannot be
// opened, the next write tries to open it again.
func (s *Store) swap(fresh string) error {
	s.file.Lock()
	defer s.file.Unlock()
	inode, err := os.Stat(fresh)
	if err != nil {
		return err
	}
	if err := s.checkInode(); err != nil { // a person may have restored a file during the copy
		return errors.Join(err, os.Remove(fresh))
	}
	if err := files.Replace(fresh, s.path); err != nil {
		return err
	}
	s.inode = inode
	old := s.db
	s.db = nil
	if err := old.Close(); err != nil {
		return err
	}
	db, err := files.OpenDB(s.path, false)
	if err != nil {
		return err
	}
	s.db = db
	return nil
}

// copyTo writes the content of db to a new file, and syncs the file to disk.
func copyTo(db *bbolt.DB, path string) error {
	fresh, err := files.OpenDB(path, false)
	if err != nil {
		return err
	}
	fresh.NoSync = true // synced once, at the end
	return errors.Join(bbolt.Compact(fresh, db, compactTxBytes), fresh.Sync(), fresh.Close())
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
