package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// Store is a [journal.Store] in a bbolt file. One goroutine does all writes; Close stops it.
type Store struct {
	path     string
	readOnly bool
	now      func() time.Time
	lock     *os.File

	// file is locked while the journal's file is replaced, so that no other goroutine uses db. db is nil if the file could
	// not be opened again after a failure.
	file sync.RWMutex
	db   *bbolt.DB
	// inode identifies the file. Only the writer goroutine changes it, with file locked.
	inode os.FileInfo

	// mu guards the fields below, which the writer goroutine sets after each commit.
	mu   sync.RWMutex
	end  layout.Head
	tail layout.Tail
	id   layout.Identity
	// grown is closed and replaced at each append.
	grown chan struct{}

	writes  chan *write
	closing chan struct{}
	closed  sync.Once
	done    chan struct{}
}

var _ journal.Store = (*Store)(nil)

// start opens a verified file and starts the writer goroutine. The store then owns the lock.
func start(path string, options Options, lock *os.File) (*Store, error) {
	db, err := files.OpenDB(path, options.ReadOnly)
	if err != nil {
		return nil, err
	}
	inode, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), db.Close())
	}
	s := &Store{
		path: path, readOnly: options.ReadOnly, now: options.clock(), lock: lock, db: db, inode: inode,
		grown: make(chan struct{}), writes: make(chan *write, groupRequests),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	if err := db.View(s.load); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), db.Close())
	}
	go s.run()
	return s, nil
}

// load reads the identity, the end and the unfinished index block, which the store keeps in memory.
func (s *Store) load(tx *bbolt.Tx) error {
	t, err := layout.TablesOf(tx)
	if err != nil {
		return err
	}
	var id layout.Identity
	if err := layout.Unseal("identity", t.Meta.Get(layout.IdentityKey), &id); err != nil {
		return err
	}
	end, err := layout.DecodeHead(t.Meta.Get(layout.HeadKey))
	if err != nil {
		return err
	}
	unfinished, err := layout.EntriesOf(t.Records, layout.BlockOf(end.Seq+1), end.Seq)
	if err != nil {
		return err
	}
	s.id, s.end, s.tail = id, end, unfinished
	return nil
}

// view runs fn in a read transaction.
func (s *Store) view(fn func(*bbolt.Tx) error) error {
	s.file.RLock()
	defer s.file.RUnlock()
	if s.isClosing() {
		return journal.ErrClosed
	}
	if s.db == nil {
		return fmt.Errorf("journal %s could not be opened again after a failed write: %w", s.path, journal.ErrUnwritable)
	}
	return s.db.View(fn)
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// published returns the end of the journal, its unfinished index block, and a channel that is closed at the next
// append.
func (s *Store) published() (layout.Head, layout.Tail, <-chan struct{}) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.end, s.tail, s.grown
}

// Read implements [journal.Store].
func (s *Store) Read(ctx context.Context, query journal.Query) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		end, _, _ := s.published()
		for progress := newScan(query, end.Seq); ; {
			events, err := s.chunk(ctx, progress)
			if err != nil {
				yield(journal.Event{}, fmt.Errorf("read journal %s: %w", s.path, err))
				return
			}
			for _, event := range events {
				if !yield(event, nil) {
					return
				}
			}
			if progress.done() {
				return
			}
		}
	}
}

func (s *Store) chunk(ctx context.Context, progress *scan) (events []journal.Event, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, unfinished, _ := s.published()
	err = s.view(func(tx *bbolt.Tx) error {
		events, err = progress.chunk(tx, unfinished)
		return err
	})
	return events, err
}

// Follow implements [journal.Store].
func (s *Store) Follow(ctx context.Context, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for {
			end, _, grown := s.published()
			for event, err := range s.Read(ctx, journal.Query{After: after, Before: end.Seq + 1}) {
				if ctx.Err() != nil {
					return
				}
				if !yield(event, err) || err != nil {
					return
				}
				after = event.Seq
			}
			select {
			case <-ctx.Done():
				return
			case <-s.closing:
				yield(journal.Event{}, fmt.Errorf("follow journal %s: %w", s.path, journal.ErrClosed))
				return
			case <-grown:
			}
		}
	}
}

// Close implements [journal.Store]. Closing twice returns [journal.ErrClosed].
func (s *Store) Close() error {
	err := fmt.Errorf("close journal %s: %w", s.path, journal.ErrClosed)
	s.closed.Do(func() {
		close(s.closing)
		<-s.done
		s.file.Lock()
		defer s.file.Unlock()
		err = nil
		if s.db != nil {
			err = s.db.Close()
		}
		if err = errors.Join(err, files.Release(s.lock, s.readOnly)); err != nil {
			err = fmt.Errorf("close journal %s: %w", s.path, err)
		}
	})
	return err
}
