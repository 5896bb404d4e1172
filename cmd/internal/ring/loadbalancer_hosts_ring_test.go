package ring

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// trialOnFirst has the trial of an update open on one node, and returns that node.
func (f *fleet) trialOnFirst() string {
	f.t.Helper()
	for name := range f.nodes {
		f.haproxies.Break(name, loadbalancersim.Faults{Deaf: true}) // so the trial waits
	}
	f.joins("p2")
	for range 60 {
		pass(2 * time.Second)
		if node := f.inTrial(); node != "" {
			return node
		}
	}
	f.t.Fatalf("no trial is open: %s", f.history("table"))
	return ""
}

// waits returns how long a change takes, at most the limit.
func (f *fleet) waits(in *incarnation, limit time.Duration) (took time.Duration, ended string) {
	f.t.Helper()
	if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: internalServer, Internal: true}); err != nil {
		f.t.Fatal(err)
	}
	for ; took < limit; took += 5 * time.Second {
		pass(5 * time.Second)
		if _, ended = f.changed(); ended != "" {
			break
		}
	}
	return took, ended
}

// TestAHeldUpdateOfAPausedClusterFreesItsHost: EKCO stopped in a trial, its pod is gone, and EKCO is paused.
func TestAHeldUpdateOfAPausedClusterFreesItsHost(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		node := f.trialOnFirst()
		if err := in.Backend(nil).Do(f.t.Context(), api.PauseRequest{Reason: "maintenance", Actor: "cli:a"}); err != nil {
			t.Fatal(err)
		}
		f.stops(in)
		if err := f.evict(node); err != nil {
			t.Fatal(err)
		}
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{})
		}
		in = f.live(nil)
		pass(time.Minute)
		took, ended := f.waits(in, 30*time.Minute)
		t.Logf("the change took %s and ended %q", took, ended)
		if took > 8*time.Minute {
			t.Errorf("the change of %d nodes waits for %s: it took %s", len(f.nodes), node, took)
		}
		f.stops(in)
	})
}

// TestAHeldUpdateOfALostNodeFreesItsHost: EKCO stopped in a trial, the node was lost, and its pod was removed.
// Nobody has paused EKCO.
func TestAHeldUpdateOfALostNodeFreesItsHost(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		pass(10 * time.Minute)
		node := f.trialOnFirst()
		f.stops(in)
		if err := f.evict(node); err != nil {
			t.Fatal(err)
		}
		f.cluster.Taint(node, journal.TaintUnreachable)
		f.server.Put(f.node(node, observerstest.Unreachable(time.Now())))
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{})
		}
		in = f.live(nil)
		pass(time.Minute)
		took, ended := f.waits(in, 30*time.Minute)
		t.Logf("the change took %s and ended %q", took, ended)
		if took > 8*time.Minute {
			t.Errorf("the change of %d nodes waits for %s: it took %s", len(f.nodes), node, took)
		}
		f.stops(in)
	})
}
