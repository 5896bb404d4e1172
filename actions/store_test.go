package actions_test

import (
	"context"
	"sync/atomic"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// countingStore counts appends.
type countingStore struct {
	journal.Store
	appends atomic.Int64
}

func (s *countingStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.appends.Add(1)
	return s.Store.Append(ctx, drafts...)
}

func newRunner(w *world, k *script) *actions.Runner { return actions.NewRunner(w.config(k.kinds())) }
