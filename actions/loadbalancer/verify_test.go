package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
)

// reloads is HAProxy that notes when it was told to reload. The first refuse times, that fails.
type reloads struct {
	*loadbalancersim.Fleet
	at     []time.Duration
	began  time.Time
	refuse int
	// asked are the addresses that were asked for an API server.
	asked map[string]bool
	// awayUntil is until when the API server does not return the pod.
	awayUntil time.Time
}

func (r *reloads) Reload(ctx context.Context, pod loadbalancer.Pod) error {
	if r.at = append(r.at, time.Since(r.began)); len(r.at) <= r.refuse {
		return errors.New("the container does not answer")
	}
	return r.Fleet.Reload(ctx, pod)
}

func (r *reloads) Reach(ctx context.Context, address string) (int, error) {
	r.asked[address] = true
	return r.Fleet.Reach(ctx, address)
}

func (r *reloads) Pod(ctx context.Context, node string) (loadbalancer.Pod, error) {
	if time.Now().Before(r.awayUntil) {
		return loadbalancer.Pod{}, kube.ErrUnavailable
	}
	return r.Fleet.Pod(ctx, node)
}

// changed returns node "a", whose HAProxy has to reload its configuration, and what was written there.
func changed(t *testing.T) (r *reloads, on journal.LoadBalancerOnNode) {
	t.Helper()
	r = &reloads{Fleet: loadbalancersim.New(t.TempDir()), began: time.Now(), asked: map[string]bool{}}
	r.SetAddress("a", "10.0.0.9")
	host := r.Host("a")
	if _, err := host.Write(t.Context(), []string{"10.0.0.1"}, "haproxy:1"); err != nil {
		t.Fatal(err)
	}
	r.Restart("a")
	on, err := host.WriteConfig(t.Context(), []string{"10.0.0.1", "10.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	return r, on
}

// updating is an action on the load balancer of node "a" at an address.
func updating(address string) actions.StepContext {
	return actions.StepContext{Action: journal.ActionRecord{
		Kind: journal.ActionUpdateLoadBalancer, Subject: journal.LoadBalancer("a"),
		Request: journal.ActionRequested{Input: journal.LoadBalancerInput{Address: address}},
	}}
}

const verifyTrial = 90 * time.Second

// verified verifies the load balancer of node "a", and returns how long that took.
func verified(t *testing.T, r *reloads, address string, on journal.LoadBalancerOnNode) (took time.Duration, err error) {
	t.Helper()
	result, err := json.Marshal(on)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = Dependencies{Running: r, Trial: verifyTrial}.verify(t.Context(), updating(address), "a", result)
	return time.Since(began), err
}

func TestVerifyReloadsHAProxyAndWaitsForAnAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, r *reloads, on *journal.LoadBalancerOnNode)
		address string
		want    string // the error
		after   time.Duration
		reloads int
	}{
		"it works at once":         {nil, "10.0.0.9", "", 0, 1},
		"its address is not known": {broken, "", "", 0, 1},
		"it has reloaded already": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.Restart("a")
		}, "10.0.0.9", "", 0, 0},
		"an API server answers later": {func(t *testing.T, r *reloads, on *journal.LoadBalancerOnNode) {
			broken(t, r, on)
			time.AfterFunc(30*time.Second, func() { r.Break("a", loadbalancersim.Faults{}) })
		}, "10.0.0.9", "", 30 * time.Second, 1},
		"no API server answers": {broken, "10.0.0.9", "no API server answers through HAProxy on node a: connection refused", verifyTrial * 9 / 10, 1},
		"its reload fails at first": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.refuse = 2
		}, "10.0.0.9", "", 2 * reloadTimeout, 3},
		"it does not reload": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.Break("a", loadbalancersim.Faults{Deaf: true})
		}, "10.0.0.9", "has not logged that it runs with backend ", verifyTrial * 9 / 10, 4},
		"it has no pod": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.Remove("a")
		}, "10.0.0.9", "has created no pod", verifyTrial * 9 / 10, 0},
		"the API server is away at first": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.awayUntil = time.Now().Add(10 * time.Second)
		}, "10.0.0.9", "", 10 * time.Second, 1},
		"the API server is away": {func(t *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
			r.awayUntil = time.Now().Add(time.Hour)
		}, "10.0.0.9", kube.ErrUnavailable.Error(), verifyTrial * 9 / 10, 0},
		"the node has no manifest": {func(t *testing.T, r *reloads, on *journal.LoadBalancerOnNode) {
			r.Remove("a")
			on.Image = ""
		}, "10.0.0.9", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, on := changed(t)
				if test.prepare != nil {
					test.prepare(t, r, &on)
				}
				took, err := verified(t, r, test.address, on)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v, want %q", err, test.want)
				}
				if took < test.after || took > test.after+6*time.Second || took >= verifyTrial {
					t.Errorf("it took %s, want %s", took, test.after)
				}
				if len(r.at) != test.reloads {
					t.Errorf("it was told to reload at %s", r.at)
				}
				for i := range r.at[min(1, len(r.at)):] {
					if r.at[i+1]-r.at[i] < reloadTimeout {
						t.Errorf("it was told to reload at %s", r.at)
					}
				}
				if reaches := on.Image != "" && test.address != "" && (test.want == "" || strings.Contains(test.want, "answers through")); r.asked[test.address] != reaches || len(r.asked) > 1 {
					t.Errorf("asked was %v", r.asked)
				}
			})
		})
	}
}

func broken(_ *testing.T, r *reloads, _ *journal.LoadBalancerOnNode) {
	r.Break("a", loadbalancersim.Faults{Broken: true})
}

// TestVerifyEndsWithItsStep: EKCO may stop at any time.
func TestVerifyEndsWithItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, on := changed(t)
		broken(t, r, nil)
		result, err := json.Marshal(on)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		if err := (Dependencies{Running: r, Trial: verifyTrial}).verify(ctx, updating("10.0.0.9"), "a", result); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestVerifyNeedsAResult(t *testing.T) {
	if err := (Dependencies{Trial: verifyTrial}).verify(t.Context(), updating(""), "a", json.RawMessage("[]")); err == nil {
		t.Error("it verifies nonsense")
	}
}

// twoNodes is a cluster of a primary "a" and another node "b".
type twoNodes struct{}

func (twoNodes) ListNodes(context.Context) ([]kube.Node, error) {
	return []kube.Node{
		{Name: "a", UID: "uid-a", Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: "10.0.0.9"}},
		{Name: "b", UID: "uid-b", Facts: journal.NodeFacts{Role: journal.RoleWorker, InternalIP: "10.0.0.8"}},
	}, nil
}

// TestANodesAddressIsThatOfItsAction, also if its kubelet keeps its server.
func TestANodesAddressIsThatOfItsAction(t *testing.T) {
	change := journal.ActionRecord{Kind: journal.ActionChangeLoadBalancer, Subject: journal.Kubeconfigs, Request: journal.ActionRequested{
		Input: journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true, Exclude: []string{"b"}},
	}}
	var err error
	if change.Plan, err = (Dependencies{Nodes: twoNodes{}, Running: loadbalancersim.New(t.TempDir()), HAProxy: "haproxy:1"}).planChange(t.Context(), change, change.Request.Input.(journal.KubeconfigsInput)); err != nil {
		t.Fatal(err)
	}
	update := updating("10.0.0.7").Action
	restart := update
	restart.Kind = journal.ActionRestartLoadBalancer
	for _, test := range []struct {
		record     journal.ActionRecord
		node, want string
	}{{update, "a", "10.0.0.7"}, {restart, "a", "10.0.0.7"}, {change, "a", "10.0.0.9"}, {change, "b", "10.0.0.8"}, {change, "c", ""}} {
		if got, err := addressOf(test.record, test.node); err != nil || got != test.want {
			t.Errorf("%s, node %s: %q, %v, want %q", test.record.Kind, test.node, got, err, test.want)
		}
	}
}
