package actions_test

import (
	"context"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func newRunner(w *world, k *script) *actions.Runner { return actions.NewRunner(w.Config(k.kinds())) }

// gatedStore lets no event of one type pass before its gate is closed.
type gatedStore struct {
	journal.Store
	kind journal.Type
	gate chan struct{}
}

func (s gatedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	for _, draft := range drafts {
		if draft.Type == s.kind {
			<-s.gate
		}
	}
	return s.Store.Append(ctx, drafts...)
}
