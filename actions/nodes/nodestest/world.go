// Package nodestest simulates nodes for tests of actions about them.
package nodestest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// World has an action's journal and a simulated cluster. Both outlive the runners in a test.
type World struct {
	*actionstest.World
	Cluster *kubesim.Cluster
}

// New adds a cluster without nodes. Actions obey the rules of the machine for nodes.
func New(w *actionstest.World) *World {
	w.Terms = terms()
	return &World{World: w, Cluster: kubesim.New()}
}

// Rules returns the rules for a kind of action.
func Rules(kind journal.ActionKind) []string { return terms()[kind].Rules }

func terms() map[journal.ActionKind]fsm.Terms {
	byKind, err := fsm.TermsByKind(fsmnode.Capability())
	if err != nil {
		panic(err)
	}
	return byKind
}

// Watch fails the test if an effect happens before its step was recorded as started.
func (w *World) Watch() { w.Cluster.BeforeEffect = w.MustBeOnRecord }

// MustBeOnRecord fails the test if the step of an effect on nodes or pods is not open in the journal.
func (w *World) MustBeOnRecord(effect string) {
	if strings.HasPrefix(effect, "delete-node ") {
		effect = "delete-node"
	}
	if effect != writeMirror {
		w.MustBeStarted(effect)
	}
}

// writeMirror is an effect that belongs to no step.
const writeMirror = "write-mirror"

// NodeExists reports whether node w1 exists.
func (w *World) NodeExists() bool {
	w.T.Helper()
	_, err := w.Cluster.Node(w.T.Context(), "w1")
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		w.T.Fatal(err)
	}
	return err == nil
}

// PodsLeft counts the pods.
func (w *World) PodsLeft() int {
	_, pods, _ := w.Cluster.Snapshot()
	return len(pods)
}

// Outcome describes the nodes, the pods, and the number of changes.
func (w *World) Outcome() string {
	nodes, pods, _ := w.Cluster.Snapshot()
	changes := 0
	for _, effect := range w.Cluster.Effects() {
		if effect.Changed && effect.Name != writeMirror {
			changes++
		}
	}
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = node.Name
	}
	return fmt.Sprintf("nodes %v, pods %v, %d changes", names, pods, changes)
}

// Mortal returns a cluster client for the process that dies with this fuse.
func Mortal(api kube.API, fuse *actionstest.Fuse) kube.API { return mortal{api, fuse} }

type mortal struct {
	kube.API
	fuse *actionstest.Fuse
}

func (m mortal) Node(ctx context.Context, name string) (kube.Node, error) {
	if err := m.fuse.Alive(); err != nil {
		return kube.Node{}, err
	}
	return m.API.Node(ctx, name)
}

func (m mortal) Pod(ctx context.Context, namespace, name string) (kube.Pod, error) {
	if err := m.fuse.Alive(); err != nil {
		return kube.Pod{}, err
	}
	return m.API.Pod(ctx, namespace, name)
}

func (m mortal) DeleteNode(ctx context.Context, name, uid string) error {
	return m.fuse.Around("delete-node "+name, func() error { return m.API.DeleteNode(ctx, name, uid) })
}

func (m mortal) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return m.fuse.Around("delete-pod "+name, func() error { return m.API.ForceDeletePod(ctx, namespace, name, uid) })
}
