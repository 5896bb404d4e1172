package ring

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// balancedVariable is how many nodes have a load balancer, for who measures.
const balancedVariable = "EKCO_BALANCED_NODES"

// balanced are by default as many nodes as it takes to see how many are done in a second: a thousand take as
// long for each of them.
func balanced(t *testing.T) int {
	t.Helper()
	nodes, err := strconv.Atoi(cmp.Or(os.Getenv(balancedVariable), "150"))
	if err != nil || nodes < 10 {
		t.Fatalf("%s is %q: want a number of at least 10", balancedVariable, os.Getenv(balancedVariable))
	}
	return nodes
}

// TestManyNodesAreInStepSoonAfterAPrimaryJoins: if each node's pod takes a second, ten nodes take less than 30 s, and a
// thousand less than three minutes: 100 s for the pods, ten at a time, and some 25 s for the small batches at the
// beginning.
func TestManyNodesAreInStepSoonAfterAPrimaryJoins(t *testing.T) {
	nodes := balanced(t)
	synctest.Test(t, func(t *testing.T) {
		h := &house{world: newWorld(t), server: observerstest.NewWorld()}
		h.store = memory.New(memory.Clock(h.now))
		h.starts = h.observing()
		f := newFleet(h)
		f.cluster.BeforeEffect, f.unproved = nil, true // each time the whole journal would be read
		f.joins("p1")
		f.runs("p1")
		for i := range nodes - 2 {
			name := fmt.Sprintf("w%04d", i)
			f.joins(name)
			f.runs(name)
		}
		in := f.live(nil)
		f.inStep(10*time.Minute, "haproxy:1", 1, nil)
		before := len(f.events(journal.Query{}))
		f.joins("p2")
		f.runs("p2")
		within := 30 * time.Second
		if nodes > 10 {
			within += time.Duration(nodes) * 150 * time.Millisecond
		}
		took := f.inStep(within, "haproxy:1", 2, nil)
		events := len(f.events(journal.Query{})) - before
		if most := f.cluster.MaxAtOnce(); most > 10 || events > 20*nodes {
			t.Errorf("there were up to %d pods at a time, and %d events", most, events)
		}
		t.Logf("with %d nodes it took %s and %d events", nodes, took, events)
		f.clean()
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// runs has HAProxy run on a node with the first primary, as an installer leaves it there. What EKCO has
// there takes a second.
func (f *fleet) runs(name string) {
	f.t.Helper()
	if _, err := f.haproxies.Host(name).Write(f.t.Context(), []string{f.nodes["p1"].String()}, f.settings.Image); err != nil {
		f.t.Fatal(err)
	}
	f.haproxies.Restart(name)
	f.cluster.Set(name, hosttasksim.Program{Start: 300 * time.Millisecond, Run: 700 * time.Millisecond, Runs: f.haproxies.Program(name), Trial: f.haproxies.Trial(name)})
}
