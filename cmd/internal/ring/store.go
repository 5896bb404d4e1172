package ring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
)

// slowAppend is how long the disk may take to have events before that is said.
const slowAppend = 5 * time.Second

// watchedStore is the journal with a memory of whether it could be written.
type watchedStore struct {
	journal.Store
	metrics Metrics
	log     *slog.Logger
	// stamping is held by all who append, and alone by who moves the clock: an
	// event of before must not come after the one that says by how much.
	stamping sync.RWMutex

	mu   sync.Mutex
	last *trouble
}

// trouble is that the journal cannot be written: why, and since when. Whoever
// meets it says so in the same words.
type trouble struct {
	err   error
	since time.Time
}

func (t *trouble) Error() string {
	return t.what() + "; nothing is done until it can; free space on its file system, or make it writable again, and EKCO continues automatically"
}

// what says what is the case, without advice.
func (t *trouble) what() string {
	return fmt.Sprintf("%s, since %s: %s", unwritable, stamp(t.since), t.cause())
}

const unwritable = "the journal cannot be written"

func (t *trouble) Unwrap() error { return t.err }

// cause is the system's part of the error.
func (t *trouble) cause() string {
	if unwritable, ok := errors.AsType[*journal.UnwritableError](t.err); ok {
		return unwritable.Cause.Error()
	}
	return t.err.Error()
}

// Append appends, and remembers how that went.
func (s *watchedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.stamping.RLock()
	defer s.stamping.RUnlock()
	return s.append(ctx, drafts...)
}

// appendMoved moves the clock and appends that, or does neither.
func (s *watchedStore) appendMoved(ctx context.Context, c *clock.Clock, by time.Duration, draft journal.Draft) error {
	s.stamping.Lock()
	defer s.stamping.Unlock()
	c.Move(by)
	_, err := s.append(context.WithoutCancel(ctx), draft)
	if err != nil {
		c.Move(-by)
	}
	return err
}

func (s *watchedStore) append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	began := time.Now()
	slow := time.AfterFunc(slowAppend, func() {
		s.log.Warn("the journal's disk does not answer: nothing is done until it does", "events", len(drafts), "since", began)
	})
	events, err := s.Store.Append(ctx, drafts...)
	if !slow.Stop() {
		s.log.Info("the journal's disk has answered", "after", time.Since(began))
	}
	if err != nil && ctx.Err() != nil {
		return events, err // given up by who asked for it, which says nothing of the disk
	}
	err = s.remember(err)
	s.metrics.Appended(len(events), time.Since(began), err)
	return events, err
}

// remember keeps how the last append went, and logs when that changes. It
// returns the error, with the time since which there is one.
func (s *watchedStore) remember(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last
	if err == nil {
		s.last = nil
		if before != nil {
			s.log.Info("the journal can be written again", "it_could_not_since", before.since)
		}
		return nil
	}
	now := &trouble{err: err, since: time.Now()}
	if before != nil {
		now.since = before.since
	}
	s.last = now
	if before == nil {
		s.log.Error("the journal cannot be written: nothing is done until it can", "error", now.cause())
	}
	if errors.Is(err, journal.ErrUnwritable) {
		return now
	}
	return err
}

// Record appends facts; it is how observers see the journal.
func (s *watchedStore) Record(ctx context.Context, drafts ...journal.Draft) error {
	_, err := s.Append(ctx, drafts...)
	return err
}

// trouble returns what keeps the journal from being written, or nil.
func (s *watchedStore) trouble() *trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
