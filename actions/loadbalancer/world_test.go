package loadbalancer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	balancer "github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	goleak.VerifyTestMain(m)
}

var listRef = kube.Ref{Version: "v1", Resource: "configmaps", Namespace: hosttasksim.Namespace, Name: "update-internallb"}

const (
	first  = "haproxy:1"
	second = "haproxy:2"
)

// world is a node "a" with a load balancer, and EKCO's program in its pods.
type world struct {
	*actionstest.World
	*hosttasksim.Cluster
	fleet *loadbalancersim.Fleet
	// away is until when the API server takes no pods.
	away time.Time
	// unreadable is why the log of HAProxy on "a" cannot be read, or nil. noPod is why its pod cannot.
	unreadable, noPod error
}

// newWorld begins with a HAProxy that balances to these primaries; none for a node without HAProxy.
func newWorld(w *actionstest.World, primaries ...string) *world {
	world := &world{World: w, Cluster: hosttasksim.New("a", "b"), fleet: loadbalancersim.New(w.T.TempDir())}
	world.fleet.SetAddress("a", "10.0.0.9")
	if len(primaries) > 0 {
		if _, err := world.fleet.Host("a").Write(w.T.Context(), primaries, first); err != nil {
			w.T.Fatal(err)
		}
		world.fleet.Restart("a")
	}
	for _, name := range []string{"a", "b"} {
		world.Set(name, hosttasksim.Program{Runs: world.fleet.Program(name), Trial: world.fleet.Trial(name)})
	}
	return world
}

// ListNodes implements [loadbalancer.Nodes]: "a" is a primary, "b" is none.
func (w *world) ListNodes(context.Context) ([]kube.Node, error) {
	return []kube.Node{
		{Name: "a", UID: "uid-a", Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: "10.0.0.9"}},
		{Name: "b", UID: "uid-b", Facts: journal.NodeFacts{Role: journal.RoleWorker, InternalIP: "10.0.0.8"}},
	}, nil
}

// ask asks for an action that gives the node these primaries, and an image.
func (w *world) ask(kind journal.ActionKind, image string, primaries []string, change ...func(*journal.LoadBalancerInput)) {
	input := journal.LoadBalancerInput{NodeUID: "uid-a", Address: "10.0.0.9", Primaries: primaries, Image: image, Layout: "1"}
	for _, change := range change {
		change(&input)
	}
	w.Request(journal.LoadBalancer("a"), journal.ActionRequested{Kind: kind, Input: input})
}

// onTrial has the node restore its former configuration unless the new one is verified.
func onTrial(input *journal.LoadBalancerInput) { input.Trial = true }

// kinds are the actions as one incarnation of EKCO has them, with clients of its own.
func (w *world) kinds(f *actionstest.Fuse) []actions.Definition {
	clients := mortal{w, f}
	running := mortalRunning{w.fleet, w, f}
	return loadbalancer.New(loadbalancer.Dependencies{
		Tasks:   hosttask.New(clients, clients, hosttasksim.Namespace, slog.New(slog.DiscardHandler)),
		Running: running, Image: "replicated/ekco:v1", Command: []string{"host-task", "load-balancer"},
		List: balancer.NewList(clients, hosttasksim.Namespace), Restarted: func() {}, Noted: func() {},
		Nodes: w, HAProxy: first, Trial: 90 * time.Second, SetKubeconfigs: []string{"host-task", "set-kubeconfig-server"},
	})
}

// mortal is the API server and HAProxy as one incarnation reaches them.
type mortal struct {
	*world
	fuse *actionstest.Fuse
}

func (m mortal) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Cluster.ReadObject(ctx, ref)
}

func (m mortal) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	if time.Now().Before(m.away) {
		return nil, fmt.Errorf("create %s: %w", ref, kube.ErrUnavailable)
	}
	err = m.fuse.Around("create "+ref.String(), func() (err error) {
		answer, err = m.Cluster.CreateObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	err = m.fuse.Around("update "+ref.String(), func() (err error) {
		answer, err = m.Cluster.ReplaceObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return m.fuse.Around("delete "+name, func() error { return m.Cluster.ForceDeletePod(ctx, namespace, name, uid) })
}

// mortalRunning is HAProxy as one incarnation reaches it.
type mortalRunning struct {
	*loadbalancersim.Fleet
	world *world
	fuse  *actionstest.Fuse
}

func (m mortalRunning) Pod(ctx context.Context, node string) (balancer.Pod, error) {
	if m.world.noPod != nil && node == "a" {
		return balancer.Pod{}, m.world.noPod
	}
	return m.Fleet.Pod(ctx, node)
}

func (m mortalRunning) Log(ctx context.Context, pod balancer.Pod) (string, error) {
	if m.world.unreadable != nil && pod.Name == "haproxy-a" {
		return "", m.world.unreadable
	}
	return m.Fleet.Log(ctx, pod)
}

func (m mortalRunning) Reload(ctx context.Context, pod balancer.Pod) error {
	return m.fuse.Around("reload", func() error { return m.Fleet.Reload(ctx, pod) })
}

// outcome is what the node has come to. How often HAProxy was told is no part of it.
func (w *world) outcome() string {
	came := w.fleet.StateOf("a")
	came.Told = 0
	return fmt.Sprintf("%+v; %d pods left", came, len(w.Pods()))
}

func scene(kind journal.ActionKind, image string, has, wanted []string, change ...func(*journal.LoadBalancerInput)) actionstest.Scene {
	return actionstest.Scene{Points: 20, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare, has...)
		w.ask(kind, image, wanted, change...)
		return actionstest.Stage{Kinds: w.kinds, Outcome: w.outcome}
	}}
}

// noting is the scene of the ConfigMap, of which it is known before what it says; nothing for none.
func noting(has string) actionstest.Scene {
	return actionstest.Scene{Points: 6, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare)
		input := journal.LoadBalancerListInput{List: "a false 10.0.0.9"}
		if has != "" {
			input.UID = w.Put(listRef, has)
		}
		w.Request(journal.LoadBalancerList(hosttasksim.Namespace), journal.ActionRequested{Kind: journal.ActionNoteLoadBalancers, Input: input})
		return actionstest.Stage{Kinds: w.kinds, Outcome: func() string { return fmt.Sprint(w.Object(listRef)["data"]) }}
	}}
}

// changing is the scene of a change. A kubelet may be restarted twice.
func changing(input journal.KubeconfigsInput) actionstest.Scene {
	return actionstest.Scene{Points: 18, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare)
		w.Request(journal.Kubeconfigs, journal.ActionRequested{Kind: journal.ActionChangeLoadBalancer, Input: input})
		return actionstest.Stage{Kinds: w.kinds, Outcome: func() string {
			var all []string
			for _, name := range []string{"a", "b"} {
				server, restarts := w.fleet.KubeletServer(name)
				came := w.fleet.StateOf(name)
				came.Told = 0
				all = append(all, fmt.Sprintf("%s: %s, restarted %v, %+v", name, server, restarts > 0, came))
			}
			return fmt.Sprintf("%q; %d pods left", all, len(w.Pods()))
		}}
	}}
}

func TestTheCrashMatrix(t *testing.T) {
	one, two := []string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.2"}
	actionstest.Scenes{
		"a primary joins, on trial":   scene(journal.ActionUpdateLoadBalancer, first, one, two, onTrial),
		"a primary joins":             scene(journal.ActionUpdateLoadBalancer, first, one, two),
		"a node without HAProxy":      scene(journal.ActionUpdateLoadBalancer, first, nil, two),
		"another image and a primary": scene(journal.ActionRestartLoadBalancer, second, one, two),
		"all are led elsewhere":       changing(journal.KubeconfigsInput{Server: "https://lb"}),
		"all are led to HAProxy":      changing(journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true, Exclude: []string{"a"}}),
		"the list is made":            noting(""),
		"the list is written":         noting(`{"data":{"update-internallb":"b false 10.0.0.2","other":"stays"}}`),
		"nothing changes":             scene(journal.ActionUpdateLoadBalancer, first, two, two),
	}.Run(t)
}
