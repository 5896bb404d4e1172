package ring

import (
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
)

// holding is told which checks may hold an action.
type holding struct {
	noMetrics
	names []string
	early bool
	state bool
}

func (h *holding) MayHold(names iter.Seq[string]) { h.names, h.early = slices.Sorted(names), !h.state }
func (h *holding) State(*fsm.World)               { h.state = true }

// TestWhatMayHoldAnActionIsToldBeforeThereIsAState: the rules of policy, and each kind's own checks.
func TestWhatMayHoldAnActionIsToldBeforeThereIsAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		told := new(holding)
		w.metrics = told
		in := w.start(nil)
		pass(time.Minute)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
		var own []string
		for _, kind := range in.kinds {
			for name := range kind.Preflights {
				own = append(own, name)
			}
		}
		for _, name := range append(own, fsmnode.RuleStormBrake) {
			if !slices.Contains(told.names, name) {
				t.Errorf("told are %q, not %s", told.names, name)
			}
		}
		if len(own) == 0 || !told.early || !told.state {
			t.Errorf("of its own the kinds have %q; told early: %t, there was a state: %t", own, told.early, told.state)
		}
	})
}
