package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// The limits of one write transaction, which has the events of several concurrent callers.
const (
	groupRequests = 256
	groupEvents   = 8192
)

// write is a request to the writer goroutine. Exactly one of events, change and exclusive is set.
type write struct {
	events []journal.Event
	// change runs in a transaction without other writes.
	change func(*layout.Appender) error
	// exclusive runs without a transaction, while no other write runs.
	exclusive func() error
	result    chan error
}

// submit sends the write to the writer and waits for the result.
func (s *Store) submit(ctx context.Context, w *write) error {
	if s.readOnly {
		return fmt.Errorf("%w: it was opened read-only", journal.ErrUnwritable)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.isClosing() {
		return journal.ErrClosed
	}
	w.result = make(chan error, 1)
	select {
	case s.writes <- w:
	case <-s.closing:
		return journal.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		select {
		case err := <-w.result:
			return err
		default: // the writer had ended before it received w
			return journal.ErrClosed
		}
	}
}

// Append implements [journal.Store].
func (s *Store) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	events := make([]journal.Event, len(drafts))
	for i, draft := range drafts {
		event, err := draft.Event()
		if err != nil {
			return nil, err
		}
		events[i] = event
	}
	if len(events) == 0 {
		return nil, nil
	}
	if err := s.submit(ctx, &write{events: events}); err != nil {
		return nil, fmt.Errorf("append %d events to journal %s: %w", len(events), s.path, err)
	}
	return events, nil
}

// run is the writer goroutine.
func (s *Store) run() {
	defer close(s.done)
	var next *write
	damaged := false // whether the last write may have left bbolt in an unknown state
	for {
		if next == nil {
			select {
			case next = <-s.writes:
			case <-s.closing:
				return
			}
		}
		var group []*write
		group, next = s.group(next)
		err := s.serve(group, damaged)
		damaged = errors.Is(err, journal.ErrUnwritable)
		for _, w := range group {
			w.result <- err
		}
	}
}

// group returns first and the appends that already wait, which go into one transaction. next is a received write that
// must run alone, or nil.
func (s *Store) group(first *write) (group []*write, next *write) {
	group = []*write{first}
	if len(first.events) == 0 {
		return group, nil
	}
	for events := len(first.events); events < groupEvents && len(group) < groupRequests; {
		select {
		case w := <-s.writes:
			if len(w.events) == 0 {
				return group, w
			}
			group = append(group, w)
			events += len(w.events)
		default:
			return group, nil
		}
	}
	return group, nil
}

func (s *Store) serve(group []*write, damaged bool) error {
	if err := s.checkInode(); err != nil {
		return unwritable(err)
	}
	if damaged || s.db == nil {
		if err := s.repair(); err != nil {
			return unwritable(err)
		}
	}
	if group[0].exclusive != nil {
		return group[0].exclusive()
	}
	return s.commit(func(a *layout.Appender) error {
		if group[0].change != nil {
			return group[0].change(a)
		}
		now := s.now()
		for _, w := range group {
			for i := range w.events {
				if err := a.Append(&w.events[i], now); err != nil {
					return err
				}
			}
		}
		return a.Finish()
	})
}

// checkInode returns an error if another program deleted or replaced the file: what EKCO wrote to a deleted file would be
// lost when EKCO ends.
func (s *Store) checkInode() error {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", journal.ErrFileReplaced, err)
	case err != nil:
		return err
	case !os.SameFile(info, s.inode):
		return fmt.Errorf("%w, %s", journal.ErrFileReplaced, s.path)
	}
	return nil
}

// refusal marks an error that is not about the disk, so that the writer does not repair the file.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// commit runs fn in a transaction, and then makes the result visible to readers.
func (s *Store) commit(fn func(*layout.Appender) error) error {
	// Appending to s.tail may write into memory that readers share, but they do not read beyond their slice's length.
	a := &layout.Appender{Head: s.end, Tail: s.tail}
	var id layout.Identity
	err := s.db.Update(func(tx *bbolt.Tx) (err error) {
		if a.Tables, err = layout.TablesOf(tx); err != nil {
			return err
		}
		if !bytes.Equal(a.Meta.Get(layout.HeadKey), s.end.Encode()) { // a copy was written into the same file
			return fmt.Errorf("%w, %s", journal.ErrFileReplaced, s.path)
		}
		if err := fn(a); err != nil {
			return err
		}
		return layout.Unseal("identity", a.Meta.Get(layout.IdentityKey), &id)
	})
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused.error
	case err != nil:
		return unwritable(err)
	}
	s.publish(a, id)
	return nil
}

func (s *Store) publish(a *layout.Appender, id layout.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grew := a.Seq > s.end.Seq
	s.end, s.tail, s.id = a.Head, a.Tail, id
	if grew {
		close(s.grown)
		s.grown = make(chan struct{})
	}
}

func unwritable(err error) error { return &journal.UnwritableError{Cause: err} }

// repair opens the file again after a failed commit, and removes the events of that commit if they are on disk: bbolt
// can return an error after it has written the last page.
func (s *Store) repair() error {
	s.file.Lock()
	defer s.file.Unlock()
	if s.db != nil {
		err := s.db.Close()
		s.db = nil
		if err != nil {
			return err
		}
	}
	db, err := files.OpenDB(s.path, false)
	if err != nil {
		return err
	}
	if err := s.removeUnpublished(db); err != nil {
		return errors.Join(err, db.Close())
	}
	s.db = db
	return nil
}

// removeUnpublished removes all events after s.end, and their index. It does nothing if another program has written
// another journal, or an older copy of this one, into the same file.
func (s *Store) removeUnpublished(db *bbolt.DB) error {
	clean := false
	err := db.View(func(tx *bbolt.Tx) error {
		t, err := layout.TablesOf(tx)
		if err != nil {
			return err
		}
		var id layout.Identity
		if err := layout.Unseal("identity", t.Meta.Get(layout.IdentityKey), &id); err != nil {
			return err
		}
		head, err := layout.DecodeHead(t.Meta.Get(layout.HeadKey))
		clean = head == s.end
		if err == nil && (id.JournalID != s.id.JournalID || !clean && head.Seq <= s.end.Seq) {
			return fmt.Errorf("%w, %s", journal.ErrFileReplaced, s.path)
		}
		return err
	})
	if err != nil || clean {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		t, err := layout.TablesOf(tx)
		if err != nil {
			return err
		}
		if err := deleteAfter(t.Records, s.end.Seq+1); err != nil {
			return err
		}
		if err := deleteAfter(t.Index, layout.BlockOf(s.end.Seq+1)); err != nil {
			return err
		}
		return t.Meta.Put(layout.HeadKey, s.end.Encode())
	})
}

// deleteAfter deletes the key first and all greater keys.
func deleteAfter(bucket *bbolt.Bucket, first uint64) error {
	cursor := bucket.Cursor()
	for k, _ := cursor.Seek(layout.Key(first)); k != nil; k, _ = cursor.Seek(layout.Key(first)) {
		if err := bucket.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
