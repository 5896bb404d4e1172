package actionstest

import (
	"context"
	"sync/atomic"

	"github.com/replicatedhq/ekco/journal"
)

// CountingStore counts the appends to a journal.
type CountingStore struct {
	journal.Store
	appends atomic.Int64
}

// Append counts the call and passes it on.
func (s *CountingStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.appends.Add(1)
	return s.Store.Append(ctx, drafts...)
}

// Appends returns the number of appends.
func (s *CountingStore) Appends() int64 { return s.appends.Load() }
