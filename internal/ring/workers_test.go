package ring

import (
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func TestAnAnsweredWarningHasItsActionLookAgainAndNoOther(t *testing.T) {
	asked := &worker{signals: make(chan actions.Signal, 1)}
	other := &worker{signals: make(chan actions.Signal, 1)}
	r := &Ring{workers: map[string]*worker{"purge-w1-1": asked, "purge-w2-2": other}}
	r.signalWorkers(journal.Event{Type: journal.TypeActionWarned, Action: "purge-w1-1"})
	select {
	case signal := <-asked.signals:
		if signal != actions.SignalRecheck {
			t.Errorf("it was told %v", signal)
		}
	default:
		t.Error("it was told nothing")
	}
	if len(other.signals) != 0 {
		t.Error("another action was told as well")
	}
}
