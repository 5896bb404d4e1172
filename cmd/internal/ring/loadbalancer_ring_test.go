package ring

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/actions"
	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmbalancer "github.com/replicatedhq/ekco/fsm/loadbalancer"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	balancersource "github.com/replicatedhq/ekco/observers/loadbalancer"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// fleet is a ward on whose nodes HAProxy runs; those whose names begin with p are primaries.
type fleet struct {
	*ward
	haproxies *loadbalancersim.Fleet
	nodes     map[string]netip.Addr
	settings  fsmbalancer.Policy
	// unproved has nobody look whether what is reloaded is on record, for very many nodes.
	unproved bool
}

var updateInternalLB = kube.Ref{Version: "v1", Resource: "configmaps", Namespace: hosttasksim.Namespace, Name: "update-internallb"}

// withHAProxies runs a test with the capability as the product has it, and no node yet.
func withHAProxies(t *testing.T, test func(*fleet)) {
	inAHouse(t, func(h *house) {
		h.server.Remove(observerstest.Node("a", "uid-a"))
		test(newFleet(h))
	})
}

func newFleet(h *house) *fleet {
	f := &fleet{
		ward: newWard(h, nil), haproxies: loadbalancersim.New(h.t.TempDir()), nodes: map[string]netip.Addr{},
		settings: fsmbalancer.Policy{Enabled: true, Image: "haproxy:1", Version: "0", Layout: loadbalancer.Layout()},
	}
	f.kind = ""
	return f
}

// joins adds ready nodes, or changes them.
func (f *fleet) joins(names ...string) {
	for _, name := range names {
		if _, is := f.nodes[name]; !is {
			f.nodes[name] = netip.AddrFrom4([4]byte{10, 0, byte(len(f.nodes) >> 8), byte(len(f.nodes)) + 1})
			f.haproxies.SetAddress(name, f.nodes[name].String())
			f.cluster.Add(name)
			f.cluster.Set(name, hosttasksim.Program{Runs: f.haproxies.Program(name), Trial: f.haproxies.Trial(name), Then: f.haproxies.Pull(name)})
		}
		f.server.Put(f.node(name))
	}
}

func (f *fleet) node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	return observerstest.Node(name, "uid-"+name, append(changes, func(n *corev1.Node) {
		n.Status.Addresses[0].Address = f.nodes[name].String()
		if name[0] == 'p' {
			n.Labels = map[string]string{kube.LabelControlPlane: ""}
		}
	})...)
}

// leaves takes nodes away for good.
func (f *fleet) leaves(name string) {
	f.server.Remove(f.node(name))
	f.cluster.Delete(name)
	delete(f.nodes, name)
}

// live starts a ring with the capability.
func (f *fleet) live(arm func(*incarnation)) *incarnation {
	tasks := hosttask.New(f, f, hosttasksim.Namespace, f.logger())
	list, joined, noted := loadbalancer.NewList(f, hosttasksim.Namespace), &observers.Nudge{}, &observers.Nudge{}
	running := mortalHAProxies{f.haproxies, f}
	capability := Capability{
		Fsm: fsmbalancer.Capability(), Words: fsmbalancer.Words, Policy: f.settings,
		Actions: func(kube.API) []actions.Definition {
			return actionsbalancer.New(actionsbalancer.Dependencies{
				Tasks: tasks, Running: running, List: list, Image: "replicated/ekco:v1",
				Command: []string{"host-task", "load-balancer"}, Restarted: joined.Look, Noted: noted.Look,
				Nodes: f, HAProxy: f.settings.Image, Trial: 90 * time.Second, SetKubeconfigs: []string{"host-task", "set-kubeconfig-server"},
			})
		},
		Sources: func(s *fsm.State) []observers.Source {
			known, lists := fsmbalancer.Known(s), fsmbalancer.KnownLists(s)
			if !f.settings.Enabled {
				return []observers.Source{balancersource.Off(known, fsmbalancer.Off), balancersource.NewList(list, lists, fsmbalancer.Off)}
			}
			return append(joined.Over(balancersource.New(f, running, known, fsmbalancer.Backends(s))), noted.Over(balancersource.NewList(list, lists, ""))...)
		},
	}
	changes := Capability{Fsm: fsmbalancer.ChangeCapability(), Words: fsmbalancer.ChangeWords}
	f.list = func() Capabilities { return Capabilities{f.house.nodes(), capability, changes} }
	f.also = nudging{joined}
	f.beside = tasks.SweepRegularly
	return f.estate.live(arm)
}

// liveInStep is live, with nodes that have joined, whose load balancers are in step, with one primary.
func (f *fleet) liveInStep(nodes ...string) *incarnation {
	f.t.Helper()
	in := f.live(nil)
	pass(time.Minute)
	f.joins(nodes...)
	f.inStep(2*time.Minute, "haproxy:1", 1, nil)
	return in
}

// stops ends it as SIGTERM does.
func (f *fleet) stops(in *incarnation) {
	f.t.Helper()
	if err := in.stop(); err != nil {
		f.t.Error(err)
	}
}

// nudging has sources look when a Node changes.
type nudging struct{ *observers.Nudge }

func (nudging) Example() runtime.Object { return &corev1.Node{} }
func (n nudging) Seen(runtime.Object)   { n.Look() }
func (n nudging) Gone(runtime.Object)   { n.Look() }
func (n nudging) All([]runtime.Object)  { n.Look() }

// mortalHAProxies are HAProxies as one incarnation reaches them.
type mortalHAProxies struct {
	*loadbalancersim.Fleet
	of *fleet
}

func (m mortalHAProxies) Reload(ctx context.Context, pod loadbalancer.Pod) error {
	if err := m.of.dead(); err != nil {
		return err
	}
	if !m.of.unproved {
		m.of.mustBeRecorded("reload " + pod.Name)
	}
	return m.Fleet.Reload(ctx, pod)
}

// inStep waits until all nodes are in step with so many primaries, that image and as many starts, and
// the ConfigMap says so.
func (f *fleet) inStep(within time.Duration, image string, primaries int, starts map[string]int) (took time.Duration) {
	f.t.Helper()
	began := time.Now()
	for {
		behind := f.behind(image, primaries, starts)
		if behind == "" {
			return time.Since(began)
		}
		if time.Since(began) >= within {
			f.t.Fatalf("after %s: %s; the journal says:\n%s", within, behind, f.history("table"))
		}
		pass(time.Second)
	}
}

func (f *fleet) behind(image string, primaries int, starts map[string]int) string {
	var members []string
	for name, address := range f.nodes {
		started := 1
		if n, is := starts[name]; is {
			started = n
		}
		came := f.haproxies.StateOf(name)
		came.Told = 0
		if want := (loadbalancersim.State{Image: image, Servers: primaries, InStep: true, Started: started}); came != want {
			return fmt.Sprintf("%s is %+v, want %+v", name, came, want)
		}
		members = append(members, fmt.Sprintf("%s %t %s", name, name[0] == 'p', address))
	}
	if got, want := f.listed(), strings.Join(slices.Sorted(slices.Values(members)), ","); got != want {
		return fmt.Sprintf("the ConfigMap says %q, want %q", got, want)
	}
	if open := f.state().OpenActions(); len(open) > 0 {
		return fmt.Sprintf("%s is open", open[0].ID)
	}
	return ""
}

// listed is what the ConfigMap says.
func (f *fleet) listed() string {
	data, _ := f.cluster.Object(updateInternalLB)["data"].(map[string]any)
	says, _ := data["update-internallb"].(string)
	return says
}

func TestThreeNodesAreInStepAMinuteAfterAPrimaryJoinsOrLeaves(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.joins("p2")
		f.inStep(time.Minute, "haproxy:1", 2, nil)
		pass(time.Hour)
		f.leaves("p1")
		f.inStep(time.Minute, "haproxy:1", 1, nil)
		f.says("the status", f.status(in, "wide"), "loadbalancer", "w1", "InStep", "forwards to")
		f.says("the history", f.history("table"), "the primaries are 10.0.0.4, and HAProxy forwards to 10.0.0.1, 10.0.0.4")
		f.clean()
		f.stops(in)
	})
}

func TestANodeThatIsAwayHoldsUpNobodyAndIsDoneWhenItIsBack(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		pass(10 * time.Minute) // so that its loss does not count as caused by the change
		f.cluster.Taint("w1", journal.TaintUnreachable)
		f.server.Put(f.node("w1", observerstest.Unreachable(time.Now())))
		pass(10 * time.Second)
		f.joins("p2")
		pass(time.Minute)
		if w1, w2 := f.haproxies.StateOf("w1"), f.haproxies.StateOf("w2"); w1.Servers != 1 || w2.Servers != 2 || !strings.Contains(f.listed(), "p2 true") {
			t.Errorf("w1 is %+v, w2 %+v, noted is %q", w1, w2, f.listed())
		}
		f.cluster.Taint("w1", "")
		f.joins("w1")
		f.inStep(2*time.Minute, "haproxy:1", 2, nil)
		f.clean()
		f.stops(in)
	})
}

func TestAnotherImageRestartsOneHAProxyAfterTheOther(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.stops(in)
		f.settings.Image = "haproxy:2"
		f.haproxies.Break("w1", loadbalancersim.Faults{Broken: true})
		f.haproxies.Break("w2", loadbalancersim.Faults{Broken: true})
		f.haproxies.Break("p1", loadbalancersim.Faults{Broken: true})
		in = f.live(nil)
		pass(3 * time.Minute)
		restarted := 0
		for name := range f.nodes {
			restarted += f.haproxies.StateOf(name).Started - 1
		}
		if restarted != 1 {
			t.Errorf("%d were restarted, of which none serves", restarted)
		}
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{})
		}
		f.inStep(10*time.Minute, "haproxy:2", 1, map[string]int{"p1": 2, "w1": 2, "w2": 2})
		pass(time.Hour)
		f.inStep(0, "haproxy:2", 1, map[string]int{"p1": 2, "w1": 2, "w2": 2})
		f.clean()
		f.stops(in)
	})
}

func TestAnImageThatCannotBePulledRestartsNoHAProxy(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.stops(in)
		f.settings.Image = "haproxy:2"
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{NoImage: "haproxy:2"})
		}
		in = f.live(nil)
		pass(3 * time.Hour)
		for name := range f.nodes {
			if came := f.haproxies.StateOf(name); came.Image != "haproxy:1" || came.Started != 1 || !came.InStep {
				t.Errorf("the load balancer of %s is %+v", name, came)
			}
		}
		f.says("the status", f.status(in, "wide"), "Stalled", "image haproxy:2 was not found")
		f.stops(in)
		f.settings.Image = "haproxy:3"
		in = f.live(nil)
		f.inStep(time.Hour, "haproxy:3", 1, map[string]int{"p1": 2, "w1": 2, "w2": 2})
		f.clean()
		f.stops(in)
	})
}

// TestAnImageWithWhichHAProxyDoesNotWorkIsTakenBackOnOneNode: that node tries it twice, the others never.
func TestAnImageWithWhichHAProxyDoesNotWorkIsTakenBackOnOneNode(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.stops(in)
		f.settings.Image = "haproxy:2"
		for name := range f.nodes {
			f.haproxies.Break(name, loadbalancersim.Faults{BadImage: "haproxy:2"})
		}
		in = f.live(nil)
		pass(3 * time.Hour)
		starts, nodes := map[string]int{}, map[int]int{}
		for name := range f.nodes {
			came := f.haproxies.StateOf(name)
			if came.Image != "haproxy:1" || !came.InStep {
				t.Errorf("the load balancer of %s is %+v", name, came)
			}
			starts[name] = came.Started + 1 // with the next image
			nodes[came.Started]++
		}
		if nodes[1] != 2 || nodes[3] != 1 { // each try restores the former files
			t.Errorf("starts, and nodes with so many: %v", nodes)
		}
		f.says("the status", f.status(in, "wide"), "Stalled", "LoadBalancerRollout", "the former configuration and manifest were restored")
		f.stops(in)
		f.settings.Image = "haproxy:3"
		in = f.live(nil)
		f.inStep(time.Hour, "haproxy:3", 1, starts)
		f.clean()
		f.stops(in)
	})
}

func TestWhoDeletesTheConfigMapHasAllWrittenAgain(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		f.cluster.Put(updateInternalLB, `{"data":{"update-internallb":"p1 true 10.0.0.1"}}`)
		in := f.liveInStep("p1", "w1")
		f.byHand("w1")
		f.cluster.Remove(updateInternalLB)
		f.inStep(time.Minute, "haproxy:1", 1, nil)
		f.says("the history", f.history("table"), "another program deleted or changed ConfigMap kurl/update-internallb")
		f.clean()
		f.stops(in)
	})
}

// byHand changes the configuration of a node, as a person does.
func (f *fleet) byHand(node string) {
	f.t.Helper()
	if err := os.WriteFile(f.haproxies.Host(node).ConfigPath(), []byte("# mine\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func TestWhatSomebodyChangesByHandIsPutBackAndThenNotFoughtOver(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1")
		pass(time.Hour)
		f.byHand("w1")
		f.haproxies.Restart("w1") // with what is mine
		f.inStep(10*time.Minute, "haproxy:1", 1, map[string]int{"w1": 2})
		pass(2 * time.Hour)
		f.byHand("p1") // and nobody tells HAProxy
		f.inStep(25*time.Hour, "haproxy:1", 1, map[string]int{"w1": 2})
		tasks := f.cluster.Made("w1")
		for range 12 * 24 {
			pass(5 * time.Minute)
			f.byHand("w1")
			f.haproxies.Restart("w1")
		}
		// Each look takes two pods: HAProxy checks the configuration first.
		if made := f.cluster.Made("w1") - tasks; made < 6 || made > 20 {
			t.Errorf("in a day in which somebody changed it every five minutes it had %d pods", made)
		}
		f.says("the status", f.status(in, "wide"), "HAProxy on node w1 restarts or ends each time")
		pass(time.Minute)
		f.clean()
		f.stops(in)
	})
}

func TestSwitchedOffLaterAllIsLeftAsItIsAndSaidOnce(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1")
		for range 2 {
			f.stops(in)
			f.settings.Enabled = false
			in = f.live(nil)
			pass(time.Hour)
		}
		f.inStep(0, "haproxy:1", 1, nil)
		if said := strings.Count(f.history("table"), "loadbalancer w1 is no longer managed: "+fsmbalancer.Off); said != 1 {
			t.Errorf("it was said %d times:\n%s", said, f.history("table"))
		}
		f.stops(in)
		f.settings.Enabled = true
		in = f.live(nil)
		f.inStep(2*time.Minute, "haproxy:1", 1, nil)
		f.stops(in)
	})
}

func TestAFullDiskOfOneNodeIsNamedAndHoldsUpNoOther(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		in := f.liveInStep("p1", "w1", "w2")
		f.cluster.Set("w1", hosttasksim.Program{Runs: func([]string) (any, error) { return nil, errors.New("no space left on device") }})
		f.joins("p2")
		pass(20 * time.Minute)
		if w1, w2 := f.haproxies.StateOf("w1"), f.haproxies.StateOf("w2"); w1.Servers != 1 || w2.Servers != 2 {
			t.Errorf("w1 is %+v, w2 %+v\n%s", w1, w2, f.history("table"))
		}
		f.says("the status", f.status(in, "wide"), "w1", "no space left on device")
		f.cluster.Set("w1", hosttasksim.Program{Runs: f.haproxies.Program("w1")})
		for _, rec := range f.state().OpenActions() {
			if err := in.Backend(nil).Do(context.Background(), api.RetryRequest{Action: rec.ID, Reason: "there is room", Actor: "cli:root@test"}); err != nil {
				t.Error(err)
			}
		}
		f.inStep(time.Hour, "haproxy:1", 2, nil)
		f.clean()
		f.stops(in)
	})
}
