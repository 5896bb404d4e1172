package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Store is a [journal.Store] in memory.
type Store struct {
	id  string
	now func() time.Time

	mu sync.RWMutex
	// events is only appended to, so a reader can keep a copy of the slice after it releases mu.
	events   []journal.Event
	snapshot *journal.Snapshot
	cluster  string
	broken   error // set by Break
	// grown is closed and replaced at each append.
	grown  chan struct{}
	closed chan struct{}
}

var _ journal.Store = (*Store)(nil)

// Option configures a store.
type Option func(*Store)

// Clock makes the store use this clock for the times of events.
func Clock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// New returns a journal with only its journal.created event.
func New(options ...Option) *Store {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	s := &Store{
		id: hex.EncodeToString(id[:]), now: time.Now,
		grown: make(chan struct{}), closed: make(chan struct{}),
	}
	for _, option := range options {
		option(s)
	}
	_, err := s.Append(context.Background(), journal.CreatedDraft(s.id))
	if err != nil { // a new store accepts every valid draft
		panic(err)
	}
	return s
}

// Reopen closes the store and returns a new store with the same content, like a restart of the process.
func (s *Store) Reopen() *Store {
	_ = s.Close() // it may be closed already
	return s.Copy()
}

// Copy returns a new store with the present content, like a copy of a journal's file.
func (s *Store) Copy() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Store{
		id: s.id, now: s.now, events: slices.Clone(s.events), snapshot: s.snapshot, cluster: s.cluster,
		grown: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Break makes every write fail with [journal.ErrUnwritable] and this cause. Break(nil) ends that.
func (s *Store) Break(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = cause
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return nil, fmt.Errorf("append %d events: %w", len(drafts), err)
	}
	if len(events) == 0 {
		return nil, nil
	}
	now := s.now().UTC().Round(0)
	for i := range events {
		events[i].Seq = uint64(len(s.events)) + 1
		events[i].Time = now
		events[i].Seal(s.lastHash())
		s.events = append(s.events, clone(events[i]))
	}
	close(s.grown)
	s.grown = make(chan struct{})
	return events, nil
}

// writable returns the error for a write, if it must fail now. The caller must hold mu.
func (s *Store) writable(ctx context.Context) error {
	switch {
	case s.isClosed():
		return journal.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case s.broken != nil:
		return &journal.UnwritableError{Cause: s.broken}
	}
	return nil
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *Store) lastHash() journal.Hash {
	if len(s.events) == 0 {
		return journal.Hash{}
	}
	return s.events[len(s.events)-1].Hash
}

// Read implements [journal.Store].
func (s *Store) Read(ctx context.Context, query journal.Query) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		if err := s.readable(ctx); err != nil {
			yield(journal.Event{}, err)
			return
		}
		events, _ := s.view()
		// The event with number n has index n-1.
		if before := query.Before; before != 0 && before <= uint64(len(events)) {
			events = events[:before-1]
		}
		events = events[min(query.After, uint64(len(events))):]
		walk := slices.All(events)
		if query.Reverse {
			walk = slices.Backward(events)
		}
		yielded := 0
		for _, event := range walk {
			if !query.Matches(event) {
				continue
			}
			if err := s.readable(ctx); err != nil {
				yield(journal.Event{}, err)
				return
			}
			if !yield(clone(event), nil) {
				return
			}
			if yielded++; yielded == query.Limit {
				return
			}
		}
	}
}

func (s *Store) readable(ctx context.Context) error {
	if s.isClosed() {
		return fmt.Errorf("read journal: %w", journal.ErrClosed)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("read journal: %w", ctx.Err())
	}
	return nil
}

// view returns the events, and a channel that is closed at the next append.
func (s *Store) view() ([]journal.Event, <-chan struct{}) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.events, s.grown
}

// clone returns a copy of the event with its own payload, so that a caller cannot change the journal through it.
func clone(event journal.Event) journal.Event {
	event.Payload = bytes.Clone(event.Payload)
	return event
}

// Follow implements [journal.Store].
func (s *Store) Follow(ctx context.Context, after uint64) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for {
			events, grown := s.view()
			for ; after < uint64(len(events)); after++ {
				if ctx.Err() != nil {
					return
				}
				if s.isClosed() {
					break
				}
				if !yield(clone(events[after]), nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-s.closed:
				yield(journal.Event{}, fmt.Errorf("follow journal: %w", journal.ErrClosed))
				return
			case <-grown:
			}
		}
	}
}

// SaveSnapshot implements [journal.Store].
func (s *Store) SaveSnapshot(ctx context.Context, snapshot journal.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return fmt.Errorf("save snapshot at %d: %w", snapshot.Seq, err)
	}
	if last := uint64(len(s.events)); snapshot.Seq > last {
		return fmt.Errorf("save snapshot at %d: the journal ends at event #%d", snapshot.Seq, last)
	}
	snapshot.State = bytes.Clone(snapshot.State)
	s.snapshot = &snapshot
	return nil
}

// Snapshot implements [journal.Store].
func (s *Store) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.readable(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	if s.snapshot == nil {
		return journal.Snapshot{}, journal.ErrNoSnapshot
	}
	snapshot := *s.snapshot
	snapshot.State = bytes.Clone(snapshot.State)
	return snapshot, nil
}

// Stat implements [journal.Store].
func (s *Store) Stat(ctx context.Context) (journal.Stat, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.readable(ctx); err != nil {
		return journal.Stat{}, err
	}
	stat := journal.Stat{
		JournalID: s.id, Format: journal.Format, ClusterUID: s.cluster,
		FirstSeq: 1, LastSeq: uint64(len(s.events)), Events: uint64(len(s.events)),
		FirstTime: s.events[0].Time, LastTime: s.events[len(s.events)-1].Time,
	}
	if s.snapshot != nil {
		stat.SnapshotSeq = s.snapshot.Seq
	}
	return stat, nil
}

// BindCluster implements [journal.Store].
func (s *Store) BindCluster(ctx context.Context, uid string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(ctx); err != nil {
		return fmt.Errorf("bind journal to cluster %s: %w", uid, err)
	}
	bound, err := journal.Bind(s.id, s.cluster, uid)
	if err != nil {
		return err
	}
	s.cluster = bound
	return nil
}

// Close implements [journal.Store]. Closing twice returns [journal.ErrClosed].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return fmt.Errorf("close journal: %w", journal.ErrClosed)
	}
	close(s.closed)
	return nil
}
