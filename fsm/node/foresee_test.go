package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
)

// foreseen returns what is foreseen, each in a line.
func (w *world) foreseen() []string {
	lines := []string{}
	for _, u := range fsm.Foresee(w.s, w.p.whole(), w.now) {
		when := "at some time"
		switch {
		case u.Never:
			when = "never"
		case !u.At.IsZero():
			when = "in " + u.At.Sub(w.now).String()
		}
		line := fmt.Sprintf("%s %s %s", u.Kind, u.Subject.Name, when)
		if u.Things > 1 {
			line += fmt.Sprintf(" (%d)", u.Things)
		}
		if u.Why != "" {
			line += ": " + u.Why
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) wantForeseen(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), w.foreseen()); diff != "" {
		w.t.Errorf("foreseen (-want +got):\n%s", diff)
	}
}

func TestALostNodesFutureIsForeseenFromTheMomentItIsLost(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.wantForeseen()
	w.lose("w1")
	w.wantForeseen("clear-node w1 in 5m0s: if pods on it are terminating then", "purge-node w1 in 1h0m0s")
	w.terminating("w1", "pod")
	w.pass(time.Minute)
	w.wantForeseen("clear-node w1 in 4m0s", "purge-node w1 in 59m0s")
	w.p.PurgeDeadNodes, w.p.ClearDeadNodes = false, false
	w.wantForeseen("clear-node w1 never: clear_dead_nodes is false", "purge-node w1 never: purge_dead_nodes is false")
	w.observe("w1")
	w.wantForeseen()
}

func TestWithNothingStuckALostNodeIsNotToBeCleared(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.pass(6 * time.Minute)
	w.wantForeseen("purge-node w1 in 54m0s")
}

func TestTheStormBrakeSaysHowManyNodesItWaitsFor(t *testing.T) {
	w := storm(t, 49)
	w.pass(time.Minute)
	why := "500 of 1000 nodes are unreachable and max_unknown_nodes (49%) allows 490; EKCO continues when 10 more nodes are back"
	w.wantForeseen("clear-node  at some time (500): "+why, "purge-node  at some time (500): "+why)
	for i := range 9 {
		w.observe(fmt.Sprintf("w%04d", i))
	}
	why = "491 of 1000 nodes are unreachable and max_unknown_nodes (49%) allows 490; EKCO continues when 1 more node is back"
	w.wantForeseen("clear-node  at some time (491): "+why, "purge-node  at some time (491): "+why)
}

func TestOfAFlappingNodeNothingIsForeseen(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1", flapping)
	w.wantForeseen()
}
