package ring

import (
	"context"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Needed returns a function that reports which events the state would miss if
// it were folded again without a snapshot: the last facts of each node that
// exists, and the pauses in force. The journal keeps the events of open actions
// by itself.
func (r *Ring) Needed(ctx context.Context) (func(journal.Event) bool, error) {
	needed := make(map[uint64]bool)
	err := r.do(ctx, func(s *fsm.State) {
		for _, node := range s.Nodes {
			needed[node.FactsSeq] = node.Present()
		}
		for _, pause := range s.Pauses {
			needed[pause.Seq] = true
		}
	})
	return func(event journal.Event) bool { return needed[event.Seq] }, err
}
