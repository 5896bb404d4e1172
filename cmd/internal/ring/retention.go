package ring

import (
	"context"
	"math"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Needed returns a function that reports which events the state would miss if
// it were folded again without a snapshot: the last that is known of each node and
// of its pods, the pauses in force, and the actions by whose end EKCO judges a node;
// what became of the clock since the oldest of them that an age counts from; and
// the event that the mirror names, whose hash is compared at the next start. The
// journal keeps the events of open actions by itself.
func (r *Ring) Needed(ctx context.Context) (func(journal.Event) bool, error) {
	events, actions := map[uint64]bool{r.mirror.Covered().Seq: true}, make(map[string]bool)
	from := uint64(math.MaxUint64)
	err := r.do(ctx, func(s *fsm.State) {
		from = s.Seq
		for _, node := range s.Nodes {
			if node.Unreachable() {
				from = min(from, node.FactsSeq)
			}
			events[node.FactsSeq], events[node.GoneSeq] = true, true
			if node.LastPurge != nil {
				actions[node.LastPurge.Action] = true
			}
			for _, pod := range node.Pods {
				events[pod.Seq], actions[pod.Action] = true, true
				from = min(from, pod.Seq)
			}
		}
		for _, pause := range s.Pauses {
			events[pause.Seq] = true
			from = min(from, pause.Seq)
		}
	})
	delete(actions, "")
	return func(event journal.Event) bool {
		return events[event.Seq] || actions[event.Action] || (event.Seq >= from && isOfClock(event.Type))
	}, err
}

// isOfClock reports whether an event moves the times on record; see fsm.
func isOfClock(kind journal.Type) bool {
	return kind == journal.TypeClockJumped || kind == journal.TypeOperatorStarted
}
