package ring

import (
	"iter"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/observers"
)

// things yields the state of the machines, for sources that choose by it what to observe. It may be used only in the
// loop, while the state does not change.
func things(s *fsm.State) iter.Seq[observers.Thing] {
	return func(yield func(observers.Thing) bool) {
		for _, t := range s.Things {
			thing := observers.Thing{Subject: t.Subject, State: string(t.State), Data: t.Data, Newest: t.Newest(), Gone: t.GoneSeq != 0}
			if !yield(thing) {
				return
			}
		}
	}
}
