package ring

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// rolloutPoints is how many crash points of a rollout are tried.
const rolloutPoints = 10

// TestAtMostOneNodeIsCutOffWhereverEKCOIsKilled: a primary joins whose address cuts off each node that has it in
// HAProxy's configuration. Such a node is unreachable after 40 s, until its former configuration is restored.
func TestAtMostOneNodeIsCutOffWhereverEKCOIsKilled(t *testing.T) {
	var before, after map[string]int
	withHAProxies(t, func(f *fleet) { before, after = f.bringsBadPrimary(nil) })
	killedAtSome(t, before, after, func(f *fleet, arm func(*incarnation)) { f.bringsBadPrimary(arm) })
}

// TestAtMostOneNodeGetsABadImageWhereverEKCOIsKilled: HAProxy accepts the configuration with that image, and does not
// work with it. If no node can pull it, or it refuses the configuration, which look the same from here, none gets it.
func TestAtMostOneNodeGetsABadImageWhereverEKCOIsKilled(t *testing.T) {
	for name, bad := range map[string]badImage{
		"it does not work":   {loadbalancersim.Faults{BadImage: "haproxy:2"}, 1, "were restored"},
		"it fails its check": {loadbalancersim.Faults{NoImage: "haproxy:2"}, 0, "its check failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after map[string]int
			withHAProxies(t, func(f *fleet) { before, after = f.brings(bad, nil) })
			killedAtSome(t, before, after, func(f *fleet, arm func(*incarnation)) { f.brings(bad, arm) })
		})
	}
}

// badImage is what is wrong with image haproxy:2.
type badImage struct {
	faults loadbalancersim.Faults
	tried  int    // how many nodes get it
	says   string // in the status
}

// TestKillLeavesAtMostOneKubeletOnADeadServer: the server answers before the change.
func TestKillLeavesAtMostOneKubeletOnADeadServer(t *testing.T) {
	var before, after map[string]int
	withHAProxies(t, func(f *fleet) { before, after = f.leadsToADeadServer(nil) })
	killedAtSome(t, before, after, func(f *fleet, arm func(*incarnation)) { f.leadsToADeadServer(arm) })
}

// killedAtSome runs a rollout again and again, which began when EKCO had done so much before, and kills EKCO at another
// point each time.
func killedAtSome(t *testing.T, before, after map[string]int, rollout func(f *fleet, arm func(*incarnation))) {
	t.Helper()
	var points []fate
	for _, point := range fates(after) {
		if point.n > before[point.at] {
			points = append(points, point)
		}
	}
	if len(points) < 2*rolloutPoints {
		t.Fatalf("a run without a crash has %d points: %v to %v", len(points), before, after)
	}
	var some []fate
	for i := range rolloutPoints {
		some = append(some, points[i*len(points)/rolloutPoints])
	}
	for _, point := range crashpoints.ChooseOf(t, some) {
		t.Run(point.String(), func(t *testing.T) {
			withHAProxies(t, func(f *fleet) {
				rollout(f, func(in *incarnation) { point.arm(f.estate, in) })
			})
		})
	}
}

// threePrimariesAndTwentyWorkers are the names of three primaries and twenty workers.
func threePrimariesAndTwentyWorkers() []string {
	names := []string{"p1", "p2", "p3"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	return names
}

// lives lets time pass, and starts EKCO again if it was killed. It returns the last one.
func (f *fleet) lives(in *incarnation, d time.Duration) *incarnation {
	f.t.Helper()
	for range int(d / (15 * time.Second)) {
		pass(15 * time.Second)
		if in.life.check() != nil {
			f.t.Logf("it ended: %v", <-in.ended)
			f.closeJournal()
			f.openJournal("journal.db")
			in = f.live(nil)
		}
	}
	return in
}

// brings configures a bad image, and returns how much EKCO did before and in all. All nodes have their former files
// then.
func (f *fleet) brings(bad badImage, arm func(*incarnation)) (before, after map[string]int) {
	f.t.Helper()
	names := threePrimariesAndTwentyWorkers()
	in := f.live(nil)
	pass(time.Minute)
	f.joins(names...)
	f.inStep(20*time.Minute, "haproxy:1", 3, nil)
	f.stops(in)
	f.settings.Image = "haproxy:2"
	for _, name := range names {
		f.haproxies.Break(name, bad.faults)
	}
	before = map[string]int{dyingChanges: f.tries}
	first := f.live(arm)
	last := f.lives(first, 30*time.Minute)
	after = map[string]int{dyingAppends: first.store.appends, dyingChanges: f.tries}
	tried := 0
	for _, name := range names {
		came := f.haproxies.StateOf(name)
		if came.Started > 1 {
			tried++
		}
		if came.Image != "haproxy:1" || !came.InStep {
			f.t.Errorf("the load balancer of %s is %+v", name, came)
		}
	}
	if tried != bad.tried {
		f.t.Errorf("%d nodes were tried, want %d", tried, bad.tried)
	}
	f.says("the status", f.status(last, "wide"), "LoadBalancerRollout", bad.says)
	f.stops(last)
	return before, after
}

// bringsBadPrimary lets that primary join, and returns how much EKCO did before and in all. No node is cut off in the
// end.
func (f *fleet) bringsBadPrimary(arm func(*incarnation)) (before, after map[string]int) {
	f.t.Helper()
	names := threePrimariesAndTwentyWorkers()
	f.joins(names...)
	first := f.live(arm)
	last := f.lives(first, 20*time.Minute)
	did := func() map[string]int {
		return map[string]int{dyingAppends: first.store.appends, dyingChanges: f.tries}
	}
	before = did()
	f.joins("p9")
	cut := &cutOff{fleet: f, ever: map[string]bool{}}
	f.haproxies.Poison(f.nodes["p9"].String(), cut.tell)
	last = f.lives(last, 20*time.Minute)
	after = did()
	cut.mu.Lock()
	defer cut.mu.Unlock()
	if len(cut.ever) != 1 {
		f.t.Errorf("cut off were, and are, %v", cut.ever)
	}
	for node, is := range cut.ever {
		if came := f.haproxies.StateOf(node); is || came.Servers != 3 || !came.InStep {
			f.t.Errorf("node %s is cut off: %t, its load balancer is %+v", node, is, came)
		}
	}
	f.says("the status", f.status(last, "wide"), "LoadBalancerRollout", "were restored")
	f.stops(last)
	return before, after
}

// TestRestartOfAllHAProxiesCutsOffOneNode: a person wrote all configurations, since EKCO's does not work any more, and
// restarted each HAProxy.
func TestRestartOfAllHAProxiesCutsOffOneNode(t *testing.T) {
	withHAProxies(t, func(f *fleet) {
		names := threePrimariesAndTwentyWorkers()
		in := f.live(nil)
		pass(time.Minute)
		f.joins(names...)
		f.inStep(20*time.Minute, "haproxy:1", 3, nil)
		pass(time.Hour) // until all is verified
		bad := f.nodes["p3"].String()
		for _, name := range names {
			path := f.haproxies.Host(name).ConfigPath()
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			written := strings.ReplaceAll(string(content), " "+bad+":", " 127.0.0.9:")
			if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
				t.Fatal(err)
			}
			f.haproxies.Restart(name)
		}
		cut := &cutOff{fleet: f, ever: map[string]bool{}}
		f.haproxies.Poison(bad, cut.tell)
		pass(time.Hour)
		cut.mu.Lock()
		if len(cut.ever) != 1 {
			t.Errorf("cut off were, and are, %v", cut.ever)
		}
		for node, is := range cut.ever {
			if is || f.haproxies.StateOf(node).Servers != 3 {
				t.Errorf("node %s is cut off: %t", node, is)
			}
		}
		cut.mu.Unlock()
		f.says("the status", f.status(in, "wide"), "LoadBalancerRollout")
		f.stops(in)
	})
}

// TestInterruptedTrialIsUndone: HAProxy has not read the bad configuration by then, and would later.
func TestInterruptedTrialIsUndone(t *testing.T) {
	for name, ends := range map[string]func(*fleet, *incarnation) error{
		"its pod is deleted": func(f *fleet, _ *incarnation) error {
			pod := f.cluster.Pods()
			if len(pod) != 1 || pod[0] != "w0 Running" {
				f.t.Errorf("the pods are %q", pod)
			}
			return f.evict("w0")
		},
		"its action is cancelled": func(f *fleet, in *incarnation) error {
			return in.Backend(nil).Do(f.t.Context(), api.CancelRequest{Action: f.state().OpenActions()[0].ID, Actor: "cli:a"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHAProxies(t, func(f *fleet) {
				names := []string{"p1", "p2", "p3", "w0", "w1"}
				in := f.live(nil)
				pass(time.Minute)
				f.joins(names...)
				f.inStep(20*time.Minute, "haproxy:1", 3, nil)
				f.haproxies.Break("w0", loadbalancersim.Faults{Deaf: true})
				f.joins("p9")
				cut := &cutOff{fleet: f, ever: map[string]bool{}}
				f.haproxies.Poison(f.nodes["p9"].String(), cut.tell)
				for range 60 {
					if f.haproxies.StateOf("w0").Servers == 4 {
						break
					}
					pass(time.Second)
				}
				pass(3 * time.Second)
				if err := ends(f, in); err != nil {
					t.Fatal(err)
				}
				pass(5 * time.Second)
				if came := f.haproxies.StateOf("w0"); came.Servers != 3 {
					t.Errorf("the load balancer of w0 is %+v", came)
				}
				f.haproxies.Break("w0", loadbalancersim.Faults{})
				pass(30 * time.Minute)
				for _, name := range names {
					if came := f.haproxies.StateOf(name); came.Servers != 3 || !came.InStep || cut.ever[name] {
						t.Errorf("the load balancer of %s is %+v; it is cut off: %t", name, came, cut.ever[name])
					}
				}
				if len(cut.ever) > 1 {
					t.Errorf("cut off were, and are, %v", cut.ever)
				}
				f.stops(in)
			})
		})
	}
}

// evict deletes the pods of host tasks on a node.
func (f *fleet) evict(node string) error {
	list, err := f.ListObjects(f.t.Context(), kube.Ref{Version: "v1", Resource: "pods", Namespace: hosttasksim.Namespace}, hosttask.LabelHostTask, "true")
	for _, raw := range list {
		var pod corev1.Pod
		if err = errors.Join(err, json.Unmarshal(raw, &pod)); err == nil && pod.Spec.NodeName == node {
			err = f.ForceDeletePod(f.t.Context(), pod.Namespace, pod.Name, string(pod.UID))
		}
	}
	return err
}

// leadsToADeadServer changes the server of all kubelets to that, and returns how much EKCO did before and in all. No
// kubelet is led there in the end.
func (f *fleet) leadsToADeadServer(arm func(*incarnation)) (before, after map[string]int) {
	f.t.Helper()
	f.settings.Enabled = false
	names := threePrimariesAndTwentyWorkers()
	in := f.live(nil)
	pass(time.Minute)
	f.joins(names...)
	pass(time.Minute)
	f.stops(in)
	cut := &cutOff{fleet: f, ever: map[string]bool{}}
	f.haproxies.Poison(external, cut.tell)
	before = map[string]int{dyingChanges: f.tries}
	first := f.live(arm)
	last := f.lives(first, 30*time.Second)
	input := journal.KubeconfigsInput{Server: external}
	_, err := f.change(last, "cli:a", input)
	if last = f.lives(last, 15*time.Second); err != nil && wasKilled(err) && !f.wasAsked(journal.Kubeconfigs.Name) {
		_, err = f.change(last, "cli:a", input)
	}
	if err != nil && !wasKilled(err) {
		f.t.Fatal(err)
	}
	last = f.lives(last, 20*time.Minute)
	after = map[string]int{dyingAppends: first.store.appends, dyingChanges: f.tries}
	cut.mu.Lock()
	defer cut.mu.Unlock()
	if len(cut.ever) != 1 {
		f.t.Errorf("cut off were, and are, %v", cut.ever)
	}
	for _, name := range names {
		if server, _ := f.haproxies.KubeletServer(name); server != "" || cut.ever[name] {
			f.t.Errorf("the kubelet of %s is led to %q; it is cut off: %t", name, server, cut.ever[name])
		}
	}
	if _, ended := f.changed(); !strings.HasPrefix(ended, "partial: ") {
		f.t.Errorf("it ended %q", ended)
	}
	f.says("the verdict", f.verdict(last), `"verdict":"needs_you"`)
	f.stops(last)
	return before, after
}

// cutOff are the nodes that were cut off, and whether they still are.
type cutOff struct {
	*fleet

	mu   sync.Mutex
	ever map[string]bool
}

// tell tells that a node is cut off or not any more. Kubernetes notices a loss after 40 s.
func (c *cutOff) tell(node string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ever[node] = cut
	noticed := time.Duration(0)
	if cut {
		noticed = 40 * time.Second
	}
	time.AfterFunc(noticed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.ever[node] != cut:
		case cut:
			c.cluster.Taint(node, journal.TaintUnreachable)
			c.server.Put(c.node(node, observerstest.Unreachable(time.Now())))
		default:
			c.cluster.Taint(node, "")
			c.server.Put(c.node(node))
		}
	})
}
