package ring

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// rolloutPoints is how many crash points of a rollout are tried.
const rolloutPoints = 10

// TestAtMostOneNodeIsCutOffWhereverEKCOIsKilled: a primary joins whose address cuts off each node that has it in
// HAProxy's configuration. Such a node is unreachable after 40 s.
func TestAtMostOneNodeIsCutOffWhereverEKCOIsKilled(t *testing.T) {
	var before, after map[string]int
	withHAProxies(t, func(f *fleet) { before, after = f.bringsBadPrimary(nil) })
	var points []fate
	for _, point := range fates(after) {
		if point.n > before[point.at] {
			points = append(points, point)
		}
	}
	if len(points) < 2*rolloutPoints {
		t.Fatalf("a run without a crash has %d points: %v to %v", len(points), before, after)
	}
	for i := range rolloutPoints {
		point := points[i*len(points)/rolloutPoints]
		t.Run(point.String(), func(t *testing.T) {
			withHAProxies(t, func(f *fleet) {
				f.bringsBadPrimary(func(in *incarnation) { point.arm(f.estate, in) })
			})
		})
	}
}

// bringsBadPrimary lets that primary join, and returns how much EKCO did before and in all.
func (f *fleet) bringsBadPrimary(arm func(*incarnation)) (before, after map[string]int) {
	f.t.Helper()
	names := []string{"p1", "p2", "p3"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	f.joins(names...)
	first := f.live(arm)
	last := first
	lives := func(d time.Duration) {
		for range int(d / (15 * time.Second)) {
			pass(15 * time.Second)
			if last == first && first.life.check() != nil {
				f.t.Logf("the first one ended: %v", <-first.ended)
				f.closeJournal()
				f.openJournal("journal.db")
				last = f.live(nil)
			}
		}
	}
	lives(20 * time.Minute)
	did := func() map[string]int {
		return map[string]int{dyingAppends: first.store.appends, dyingChanges: f.tries}
	}
	before = did()
	f.joins("p9")
	cut := &cutOff{fleet: f, by: f.nodes["p9"].String()}
	for _, name := range append(names, "p9") {
		f.cluster.Set(name, hosttasksim.Program{Runs: cut.program(name)})
	}
	lives(10 * time.Minute)
	after = did()
	cut.mu.Lock()
	defer cut.mu.Unlock()
	if len(cut.nodes) != 1 {
		f.t.Errorf("cut off are %q", cut.nodes)
	}
	f.says("the status", f.status(last, "table"), "LoadBalancerRollout")
	f.stops(last)
	return before, after
}

// cutOff are the nodes that an address in their HAProxy's configuration has cut off.
type cutOff struct {
	*fleet
	by string

	mu    sync.Mutex
	nodes []string
}

// program is EKCO's program on a node.
func (c *cutOff) program(node string) func([]string) (any, error) {
	return func(args []string) (any, error) {
		result, err := c.haproxies.Program(node)(args)
		bad := slices.ContainsFunc(args, func(arg string) bool {
			return strings.HasPrefix(arg, "--primary-host=") && strings.Contains(arg+",", c.by+",")
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		if bad && err == nil && !slices.Contains(c.nodes, node) {
			c.nodes = append(c.nodes, node)
			c.haproxies.Break(node, loadbalancersim.Faults{Broken: true})
			time.AfterFunc(40*time.Second, func() {
				c.cluster.Taint(node, journal.TaintUnreachable)
				c.server.Put(c.node(node, observerstest.Unreachable(time.Now())))
			})
		}
		return result, err
	}
}
