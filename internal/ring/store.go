package ring

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// watchedStore is the journal with a memory of whether it could be written.
type watchedStore struct {
	journal.Store
	metrics Metrics
	log     *slog.Logger
	lastErr atomic.Pointer[error]
}

// Append appends, and remembers how that went.
func (s *watchedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	began := time.Now()
	events, err := s.Store.Append(ctx, drafts...)
	if err == nil || ctx.Err() == nil {
		s.remember(err)
	}
	s.metrics.Appended(len(events), time.Since(began), err)
	return events, err
}

// remember keeps how the last append went, and logs when that changes.
func (s *watchedStore) remember(err error) {
	before := s.unwritable()
	s.lastErr.Store(&err)
	switch {
	case before == nil && err != nil:
		s.log.Error("the journal cannot be written: nothing is done until it can", "error", err)
	case before != nil && err == nil:
		s.log.Info("the journal can be written again")
	}
}

// Record appends facts; it is how observers see the journal.
func (s *watchedStore) Record(ctx context.Context, drafts ...journal.Draft) error {
	_, err := s.Append(ctx, drafts...)
	return err
}

// unwritable returns the error of the last append, or nil.
func (s *watchedStore) unwritable() error {
	if err := s.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}
