package ring

import (
	"iter"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// things is what the machines know, for sources that decide by it where they look.
// It may be read only in the loop, and while the state does not change.
func things(s *fsm.State) iter.Seq[observers.Thing] {
	return func(yield func(observers.Thing) bool) {
		for uid, node := range s.Nodes {
			thing := observers.Thing{
				Subject: journal.NodeSubject(node.Name, uid), State: string(node.State),
				Data: &node.Facts, Gone: !node.GoneAt.IsZero(),
			}
			if !yield(thing) {
				return
			}
		}
	}
}
