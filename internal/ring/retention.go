package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Needed returns a function that reports which events the state would miss if
// it were folded again without a snapshot: the facts of nodes that exist, and
// the pauses. Events of open actions are needed too; the journal keeps those by
// itself.
func (r *Ring) Needed(ctx context.Context) (func(journal.Event) bool, error) {
	present := make(map[string]bool)
	err := r.do(ctx, func(s *fsm.State) {
		for uid, node := range s.Nodes {
			present[uid] = node.Present()
		}
	})
	return func(event journal.Event) bool {
		switch event.Type {
		case journal.TypePauseSet, journal.TypePauseCleared:
			return true
		case journal.TypeNodeObserved, journal.TypeNodeTransitioned:
			return present[event.Subject.UID]
		}
		return false
	}, err
}
