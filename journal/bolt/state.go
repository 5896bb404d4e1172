package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// SaveSnapshot implements [journal.Store].
func (s *Store) SaveSnapshot(ctx context.Context, snapshot journal.Snapshot) error {
	err := s.submit(ctx, &write{change: func(a *layout.Appender) error {
		if snapshot.Seq > a.Seq {
			return refuse("the journal ends at event #%d", a.Seq)
		}
		return layout.PutSnapshot(a.Snapshot, snapshot)
	}})
	if err != nil {
		return fmt.Errorf("save snapshot at %d in journal %s: %w", snapshot.Seq, s.path, err)
	}
	return nil
}

// Snapshot implements [journal.Store].
func (s *Store) Snapshot(ctx context.Context) (snapshot journal.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return journal.Snapshot{}, err
	}
	err = s.view(func(tx *bbolt.Tx) error {
		t, err := layout.TablesOf(tx)
		if err != nil {
			return err
		}
		snapshot, err = layout.ReadSnapshot(t.Snapshot.Get)
		snapshot.State = bytes.Clone(snapshot.State)
		return err
	})
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("read snapshot of journal %s: %w", s.path, err)
	}
	return snapshot, nil
}

// BindCluster implements [journal.Store].
func (s *Store) BindCluster(ctx context.Context, uid string) error {
	s.mu.RLock()
	id := s.id
	s.mu.RUnlock()
	if s.isClosing() {
		return fmt.Errorf("bind journal %s: %w", s.path, journal.ErrClosed)
	}
	bound, err := journal.Bind(id.JournalID, id.ClusterUID, uid)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if bound == id.ClusterUID {
		return nil
	}
	err = s.submit(ctx, &write{change: func(a *layout.Appender) error {
		var current layout.Identity
		if err := layout.Unseal("identity", a.Meta.Get(layout.IdentityKey), &current); err != nil {
			return err
		}
		if current.ClusterUID, err = journal.Bind(current.JournalID, current.ClusterUID, uid); err != nil {
			return refusal{err}
		}
		return layout.PutSealed(a.Meta, layout.IdentityKey, current)
	}})
	if err != nil {
		return fmt.Errorf("bind journal %s: %w", s.path, err)
	}
	return nil
}

// Stat implements [journal.Store].
func (s *Store) Stat(ctx context.Context) (journal.Stat, error) {
	if err := ctx.Err(); err != nil {
		return journal.Stat{}, err
	}
	s.mu.RLock()
	stat := journal.Stat{
		JournalID: s.id.JournalID, Format: s.id.Format, ClusterUID: s.id.ClusterUID, LastSeq: s.end.Seq, Path: s.path,
	}
	s.mu.RUnlock()
	s.file.RLock() // not while a compaction replaces the file
	stat.Replaced = errors.Is(s.checkInode(), journal.ErrFileReplaced)
	s.file.RUnlock()
	err := s.view(func(tx *bbolt.Tx) error { return fillStat(tx, &stat) })
	if err != nil {
		return journal.Stat{}, fmt.Errorf("stat journal %s: %w", s.path, err)
	}
	return stat, nil
}

func fillStat(tx *bbolt.Tx, stat *journal.Stat) error {
	t, err := layout.TablesOf(tx)
	if err != nil {
		return err
	}
	if err := fillBounds(t, stat); err != nil {
		return err
	}
	snapshot, err := layout.ReadSnapshotHead(t.Snapshot.Get)
	if err != nil {
		return err
	}
	stat.SnapshotSeq = snapshot.Seq
	return fillSize(tx, stat)
}

// fillSize sets the size of the file, and how many bytes of it are free. It succeeds for a deleted file, so that
// "ekco status" works then.
func fillSize(tx *bbolt.Tx, stat *journal.Stat) error {
	size, err := fileSize(stat.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another program deleted it; EKCO can still read its content
		size = tx.Size()
	case err != nil:
		return err
	}
	pages, db := tx.DB().Stats(), tx.DB().Info()
	free := int64(pages.FreePageN+pages.PendingPageN) * int64(db.PageSize)
	stat.Bytes, stat.FreeBytes = size, free+max(0, size-tx.Size())
	return nil
}

// fillBounds sets the numbers and times of the first and last events. It computes the number of events from the gaps.
func fillBounds(t layout.Tables, stat *journal.Stat) error {
	k, record := t.Records.Cursor().First()
	if k == nil {
		return nil
	}
	first, err := journal.ParseRecord(record)
	if err != nil {
		return err
	}
	last, err := journal.ParseRecord(t.Records.Get(layout.Key(stat.LastSeq)))
	if err != nil {
		return err
	}
	stat.FirstSeq, stat.FirstTime, stat.LastTime, stat.Events = first.Seq, first.Time, last.Time, stat.LastSeq
	return t.Gaps.ForEach(func(_, value []byte) error {
		var missing layout.Gap
		if err := layout.Unseal("gap", value, &missing); err != nil {
			return err
		}
		stat.Events -= missing.Last - missing.First + 1
		return nil
	})
}
