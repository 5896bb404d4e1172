package ring

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// watchedStore is the journal with a memory of whether it could be written.
type watchedStore struct {
	journal.Store
	metrics Metrics
	lastErr atomic.Pointer[error]
}

// Append appends, and remembers how that went.
func (s *watchedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	began := time.Now()
	events, err := s.Store.Append(ctx, drafts...)
	if err == nil || ctx.Err() == nil {
		s.lastErr.Store(&err)
	}
	s.metrics.Appended(len(events), time.Since(began), err)
	return events, err
}

// SaveSnapshot saves, and remembers how that went.
func (s *watchedStore) SaveSnapshot(ctx context.Context, snapshot journal.Snapshot) error {
	err := s.Store.SaveSnapshot(ctx, snapshot)
	if err == nil || ctx.Err() == nil {
		s.lastErr.Store(&err)
	}
	return err
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
