package ring

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// internalServer is where kubelets find the load balancer of their node.
const internalServer = "https://localhost:6444"

func TestAChangeRestartsNoHAProxyOfAnotherImage(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		f.stops(in)
		f.settings.Image = "haproxy:2" // which serves nowhere
		for name := range f.nodes {
			f.cluster.Set(name, hosttasksim.Program{Runs: f.breaking(name)})
		}
		in = f.live(nil)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: internalServer, Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		var serve []string
		for name := range f.nodes {
			if f.haproxies.StateOf(name).Started == 1 {
				serve = append(serve, name)
			}
		}
		if len(serve) != 3 {
			t.Errorf("with an image that serves nowhere, of four only %q are as they were", serve)
		}
		f.led(internalServer, 1, serve...)
		f.stops(in)
	})
}

// breaking is EKCO's program on a node where another image breaks HAProxy.
func (f *fleet) breaking(node string) func([]string) (any, error) {
	return func(args []string) (any, error) {
		result, err := f.haproxies.Program(node)(args)
		if on, is := result.(journal.LoadBalancerOnNode); is && on.Manifest {
			f.haproxies.Break(node, loadbalancersim.Faults{Broken: true})
		}
		return result, err
	}
}

// inTrial returns the node on which an update tries a configuration, or "".
func (f *fleet) inTrial() string {
	for _, rec := range f.state().OpenActions() {
		if rec.Kind == journal.ActionUpdateLoadBalancer && rec.Steps[journal.StepWriteLoadBalancer+" "+rec.Subject.Name].Open {
			return rec.Subject.Name
		}
	}
	return ""
}

// TestNodeLostInATrialDelaysNoChange: the task of the trial has the node until its timeout.
func TestNodeLostInATrialDelaysNoChange(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		pass(10 * time.Minute)
		node := f.trialOnFirst()
		f.cluster.Set(node, hosttasksim.Program{Hangs: true})
		f.cluster.Taint(node, journal.TaintUnreachable)
		f.server.Put(f.node(node, observerstest.Unreachable(time.Now())))
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{})
		}
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: internalServer, Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if _, ended := f.changed(); !strings.HasPrefix(ended, "partial: ") || !strings.Contains(ended, "node "+node+" does not answer") {
			t.Errorf("after two minutes, while node %s is lost, the change ended %q", node, ended)
		}
		if f.inTrial() != node {
			t.Errorf("the trial on node %s has ended, so the change waited for nothing", node)
		}
		f.stops(in)
	})
}

// TestOneTaskAtATimeWritesOneHost: while the trial of an update waits, an installer asks for a change.
func TestOneTaskAtATimeWritesOneHost(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2", "w3")
		var mu sync.Mutex
		on, most, all := map[string]int{}, 0, 0
		count := func(name string, n int) {
			mu.Lock()
			defer mu.Unlock()
			on[name] += n
			most, all = max(most, on[name]), all+max(n, 0)
		}
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{Deaf: true}) // so the trial waits until its end
			program := hosttasksim.Program{Then: f.haproxies.Pull(name)}
			program.Runs = func(args []string) (any, error) {
				count(name, 1)
				defer count(name, -1)
				return f.haproxies.Program(name)(args)
			}
			program.Trial = func(args []string, wait func(func() bool) error) error {
				count(name, 1)
				defer count(name, -1)
				return f.haproxies.Trial(name)(args, wait)
			}
			f.cluster.Set(name, program)
		}
		f.joins("p2")
		pass(20 * time.Second)
		if most != 1 {
			t.Fatalf("%d tasks run on one node, want the trial of an update", most)
		}
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: internalServer, Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(8 * time.Minute)
		_, ended := f.changed()
		if outcome, _, _ := strings.Cut(ended, ":"); most != 1 || outcome != string(journal.OutcomePartial) {
			t.Errorf("%d of %d tasks wrote on one node at the same time; the change ended %q", most, all, ended)
		}
		f.stops(in)
	})
}

func TestAPrimaryThatJoinsDuringAChangeIsInTheLoadBalancersAfterwards(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.cluster.Set("w1", hosttasksim.Program{Start: 20 * time.Second, Runs: f.haproxies.Program("w1")})
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: internalServer, Internal: true}); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		f.cluster.Set("w1", hosttasksim.Program{Runs: f.haproxies.Program("w1")})
		f.joins("p2") // w1 has it before the change writes what it knows
		f.inStep(10*time.Minute, "haproxy:1", 2, nil)
		pass(time.Minute)
		f.inStep(0, "haproxy:1", 2, nil)
		if _, ended := f.changed(); ended != "done: " {
			t.Errorf("it ended %q", ended)
		}
		f.led(internalServer, 1, "p1", "w1", "w2")
		f.clean()
		f.stops(in)
	})
}

func TestANodeThatIsReplacedUnderItsNameDuringAChangeIsNamed(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.settings.Enabled = false
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "p2", "p3")
		f.cluster.Set("p1", hosttasksim.Program{Start: 20 * time.Second, Runs: f.haproxies.Program("p1")})
		pass(10 * time.Second)
		if _, err := f.change(in, "cli:a", journal.KubeconfigsInput{Server: external}); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Second)
		f.cluster.Replace("p2")
		f.cluster.Delete("p3")
		pass(time.Minute)
		if all, ended := f.changed(); ended != "partial: node p2 is left alone: node p2 was replaced by another of its name; node p3 is no longer part of the cluster" {
			t.Errorf("it ended %q, after %q", ended, all)
		}
		f.says("the status", f.status(in, "wide"), "kubeconfigs", "Partly")
		f.led(external, 1, "p1")
		f.stops(in)
	})
}

// TestWhatAnotherEKCOWroteIsWrittenAgain: it has a journal of its own, knows other primaries, and says in the
// ConfigMap that they are on all nodes.
func TestWhatAnotherEKCOWroteIsWrittenAgain(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1")
		pass(time.Hour)
		if _, err := f.haproxies.Host("w1").WriteConfig(t.Context(), []string{"192.0.2.1", "192.0.2.2"}); err != nil {
			t.Fatal(err)
		}
		if err := f.haproxies.Reload(t.Context(), loadbalancer.Pod{Name: loadbalancer.PodName + "-w1"}); err != nil {
			t.Fatal(err)
		}
		list := f.cluster.Object(updateInternalLB)
		list["data"] = map[string]any{"update-internallb": "p9 true 192.0.2.1"}
		raw, err := json.Marshal(list)
		if err == nil {
			_, err = f.cluster.ReplaceObject(t.Context(), updateInternalLB, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.inStep(time.Minute, "haproxy:1", 1, nil)
		f.clean()
		f.stops(in)
	})
}

// TestTheAddressOfABridgeIsNoBackendOfAnotherNode: both primaries report it after a reboot, and that of EKCO's host
// answers there.
func TestTheAddressOfABridgeIsNoBackendOfAnotherNode(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.haproxies.Answers("10.0.0.1", "p1")
		f.haproxies.Answers("10.0.0.2", "p2")
		f.haproxies.Answers(bridge, "p1") // where EKCO runs
		in := f.live(nil)
		pass(time.Minute)
		f.joins("p1", "p2", "w1")
		f.inStep(2*time.Minute, "haproxy:1", 2, nil)
		for _, p := range []struct{ name, address string }{{"p2", "10.0.0.2"}, {"p1", "10.0.0.1"}} {
			f.haproxies.Silence(p.address)
			f.nodes[p.name] = netip.MustParseAddr(bridge)
			f.joins(p.name)
			pass(20 * time.Minute)
			if p2 := f.leadsTo("w1", "10.0.0.2"); !p2 {
				t.Errorf("after %s reports the address of a bridge, HAProxy does not lead to p2", p.name)
			}
			f.haproxies.Silence()
			pass(20 * time.Minute)
			if p1, p2, bad := f.leadsTo("w1", "10.0.0.1"), f.leadsTo("w1", "10.0.0.2"), f.leadsTo("w1", bridge); !p1 || !p2 || bad {
				t.Errorf("when %s answers again, HAProxy leads to p1: %v, to p2: %v, to the bridge: %v", p.name, p1, p2, bad)
			}
		}
		f.stops(in)
	})
}

const bridge = "172.17.0.1"

// leadsTo reports whether HAProxy on a node has an address in its configuration.
func (f *fleet) leadsTo(node, address string) bool {
	f.t.Helper()
	config, err := os.ReadFile(f.haproxies.Host(node).ConfigPath())
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Contains(string(config), " "+address+":")
}
