package loadbalancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
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
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = "haproxy:1"
	second = "haproxy:2"
)

// world is a node "a" with the files of a load balancer, a kubelet that runs its HAProxy, and
// EKCO's program in its pods.
type world struct {
	*actionstest.World
	*hosttasksim.Cluster
	host balancer.Host

	mu sync.Mutex
	// pod is HAProxy's, nil for none, log what it says.
	pod *balancer.Pod
	log string
	// has is the configuration that it runs with.
	has     string
	told    int
	started int
	// deaf has it reload nothing, broken reach no API server.
	deaf, broken bool
}

// newWorld begins with HAProxy that leads to these primaries, none for a node without it.
func newWorld(w *actionstest.World, primaries ...string) *world {
	world := &world{World: w, Cluster: hosttasksim.New("a"), host: balancer.Host{Etc: w.T.TempDir()}}
	if len(primaries) > 0 {
		if _, err := world.host.Write(primaries, first); err != nil {
			w.T.Fatal(err)
		}
		world.kubelet()
	}
	world.Set("a", hosttasksim.Program{Runs: world.program})
	return world
}

// program is what runs on the node.
func (w *world) program(args []string) (any, error) {
	var primaries []string
	image := ""
	for _, arg := range args {
		if list, is := strings.CutPrefix(arg, "--primary-host="); is {
			primaries = strings.Split(list, ",")
		}
		if name, is := strings.CutPrefix(arg, "--image="); is {
			image = name
		}
	}
	if image == "" {
		return w.host.WriteConfig(primaries)
	}
	on, err := w.host.Write(primaries, image)
	if on.Manifest {
		time.AfterFunc(2*time.Second, w.kubelet)
	}
	return on, err
}

// kubelet runs HAProxy as its manifest says.
func (w *world) kubelet() {
	manifest, err := os.ReadFile(w.host.ManifestPath())
	if err != nil {
		panic(err)
	}
	image := second
	if strings.Contains(string(manifest), first) {
		image = first
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started++
	w.pod = &balancer.Pod{Name: "haproxy-a", Image: image, Version: "0", Runs: true}
	w.log = ""
	w.reads()
}

// reads has HAProxy read its configuration.
func (w *world) reads() {
	content, err := os.ReadFile(w.host.ConfigPath())
	if err != nil {
		panic(err)
	}
	w.has = balancer.Backend(string(content))
	w.log += fmt.Sprintf("Health check for server %s/k8s-primary-0 succeeded\n", w.has)
}

// Pod implements [balancer.Running].
func (w *world) Pod(context.Context, string) (balancer.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod == nil {
		return balancer.Pod{}, kube.ErrNotFound
	}
	return *w.pod, nil
}

// Log implements [balancer.Running].
func (w *world) Log(context.Context, balancer.Pod) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log, nil
}

// Reload implements [balancer.Running].
func (w *world) Reload(context.Context, balancer.Pod) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	if !w.deaf {
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reads()
		})
	}
	return nil
}

// Reach implements [balancer.Running].
func (w *world) Reach(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return errors.New("connection refused")
	}
	return nil
}

// ask asks for an action that gives the node these primaries, and an image.
func (w *world) ask(kind journal.ActionKind, image string, primaries ...string) {
	w.Request(journal.LoadBalancer("a"), journal.ActionRequested{Kind: kind, Input: journal.LoadBalancerInput{
		NodeUID: "uid-a", Address: "10.0.0.9", Primaries: primaries, Image: image, Layout: "1",
	}})
}

// kinds are the actions as one incarnation of EKCO has them, with clients of its own.
func (w *world) kinds(f *actionstest.Fuse) []actions.Definition {
	clients := mortal{w, f}
	return loadbalancer.New(loadbalancer.Parts{
		Tasks:   hosttask.New(clients, clients, hosttasksim.Namespace, slog.New(slog.DiscardHandler)),
		Running: clients, Image: "replicated/ekco:v1", Command: []string{"host-task", "load-balancer"},
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
	err = m.fuse.Around("create "+ref.String(), func() (err error) {
		answer, err = m.Cluster.CreateObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return m.fuse.Around("delete "+name, func() error { return m.Cluster.ForceDeletePod(ctx, namespace, name, uid) })
}

func (m mortal) Reload(ctx context.Context, pod balancer.Pod) error {
	return m.fuse.Around("reload", func() error { return m.world.Reload(ctx, pod) })
}

// outcome is what the node has come to.
func (w *world) outcome() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	content, err := os.ReadFile(w.host.ConfigPath())
	if err != nil {
		w.T.Fatal(err)
	}
	runs := "no HAProxy"
	if w.pod != nil {
		runs = fmt.Sprintf("HAProxy %s, started %d times, with what is in the file: %v", w.pod.Image, w.started, w.has == balancer.Backend(string(content)))
	}
	return fmt.Sprintf("%s; %d servers; %d pods left", runs, strings.Count(string(content), "\n    server "), len(w.Pods()))
}

func scene(kind journal.ActionKind, image string, has, shall []string) actionstest.Scene {
	return actionstest.Scene{Points: 20, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare, has...)
		w.ask(kind, image, shall...)
		return actionstest.Stage{Kinds: w.kinds, Outcome: w.outcome}
	}}
}

func TestTheCrashMatrix(t *testing.T) {
	one, two := []string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.2"}
	actionstest.Scenes{
		"a primary joins":             scene(journal.ActionUpdateLoadBalancer, first, one, two),
		"a node without HAProxy":      scene(journal.ActionUpdateLoadBalancer, first, nil, two),
		"another image and a primary": scene(journal.ActionRestartLoadBalancer, second, one, two),
		"nothing changes":             scene(journal.ActionUpdateLoadBalancer, first, two, two),
	}.Run(t)
}
