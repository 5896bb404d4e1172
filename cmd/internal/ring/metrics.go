package ring

import (
	"iter"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Metrics receives measurements. Implementations must not block.
type Metrics interface {
	// MayHold is called before the first State, with the names of all preflights that may hold an action.
	MayHold(preflights iter.Seq[string])
	// Appended is called after each append, unless the caller of the append stopped waiting.
	Appended(events int, took time.Duration, err error)
	// Folded is called for each event, in the loop.
	Folded(event journal.Decoded)
	// State is called after each turn with the new state, in the loop. It must not keep the state.
	State(w *fsm.World)
	// MirrorFailed is called for each failed write of the mirror.
	MirrorFailed(err error)
}

type noMetrics struct{}

func (noMetrics) MayHold(iter.Seq[string])           {}
func (noMetrics) Appended(int, time.Duration, error) {}
func (noMetrics) Folded(journal.Decoded)             {}
func (noMetrics) State(*fsm.World)                   {}
func (noMetrics) MirrorFailed(error)                 {}
