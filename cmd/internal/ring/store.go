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

// slowAppend is how long an append may take before EKCO logs it.
const slowAppend = 5 * time.Second

// watchedStore is the journal. It remembers whether the last append succeeded.
type watchedStore struct {
	journal.Store
	metrics Metrics
	log     *slog.Logger
	// clockLock has a read lock during appends and a write lock during a move of the clock: no event with a time of the
	// earlier clock may follow the event clock.jumped.
	clockLock sync.RWMutex

	mu   sync.Mutex
	last *trouble
}

// trouble has the error of an unwritable journal, and the time of the first failure.
type trouble struct {
	err   error
	since time.Time
}

func (t *trouble) Error() string {
	text := fmt.Sprintf("%s; EKCO does nothing until it can; %s", t.withoutAdvice(), t.advice())
	if errors.Is(t.err, journal.ErrFileReplaced) {
		return text
	}
	return text + ", and EKCO continues automatically"
}

func (t *trouble) advice() string { return (&journal.UnwritableError{Cause: t.err}).Advice() }

func (t *trouble) withoutAdvice() string {
	return fmt.Sprintf("%s, since %s: %s", unwritable, stamp(t.since), t.cause())
}

const unwritable = "the journal cannot be written"

func (t *trouble) Unwrap() error { return t.err }

// cause returns the error of the operating system.
func (t *trouble) cause() string {
	if unwritable, ok := errors.AsType[*journal.UnwritableError](t.err); ok {
		return unwritable.Cause.Error()
	}
	return t.err.Error()
}

// Append appends events, and stores the result for [watchedStore.trouble].
func (s *watchedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.clockLock.RLock()
	defer s.clockLock.RUnlock()
	return s.append(ctx, drafts...)
}

// appendMoved moves the clock and records the move, or does neither.
func (s *watchedStore) appendMoved(ctx context.Context, c *clock.Clock, by time.Duration, draft journal.Draft) error {
	s.clockLock.Lock()
	defer s.clockLock.Unlock()
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
		s.log.Warn("the journal's disk does not answer: EKCO does nothing until it does", "events", len(drafts), "since", began)
	})
	events, err := s.Store.Append(ctx, drafts...)
	if !slow.Stop() {
		s.log.Info("the journal's disk has answered", "after", time.Since(began))
	}
	if err != nil && ctx.Err() != nil {
		return events, err // the caller stopped waiting, which is no error of the disk
	}
	err = s.rememberResult(err)
	s.metrics.Appended(len(events), time.Since(began), err)
	return events, err
}

// rememberResult stores the result of the last append, and logs when it changes. It returns the error together with the
// time of the first failure.
func (s *watchedStore) rememberResult(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.last
	if err == nil {
		s.last = nil
		if before != nil {
			s.log.Info("the journal can be written again", "unwritable_since", before.since)
		}
		return nil
	}
	now := &trouble{err: err, since: time.Now()}
	if before != nil {
		now.since = before.since
	}
	s.last = now
	if before == nil {
		s.log.Error("the journal cannot be written: EKCO does nothing until it can", "error", now.cause())
	}
	if errors.Is(err, journal.ErrUnwritable) {
		return now
	}
	return err
}

// Stat implements [journal.Store]. If another program deleted or replaced the file, it reports that to
// [watchedStore.trouble], because there may be no append that would notice.
func (s *watchedStore) Stat(ctx context.Context) (journal.Stat, error) {
	stat, err := s.Store.Stat(ctx)
	if err == nil && stat.Replaced {
		_ = s.rememberResult(&journal.UnwritableError{Cause: journal.ErrFileReplaced})
	}
	return stat, err
}

// Record appends facts for observers.
func (s *watchedStore) Record(ctx context.Context, drafts ...journal.Draft) error {
	_, err := s.Append(ctx, drafts...)
	return err
}

// trouble returns the present error of the journal, or nil.
func (s *watchedStore) trouble() *trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
