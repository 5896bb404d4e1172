package ring

import (
	"iter"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Metrics records what happens; implementations must not block.
type Metrics interface {
	// MayHold is called with the preflights that may hold an action, before the first State.
	MayHold(preflights iter.Seq[string])
	// Appended is called after each append, unless its caller gave up.
	Appended(events int, took time.Duration, err error)
	// Folded is called for each event, on the loop goroutine.
	Folded(event journal.Decoded)
	// State is called with the new state after each turn, on the loop goroutine. It must not keep it.
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
