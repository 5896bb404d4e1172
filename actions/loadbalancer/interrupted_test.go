package loadbalancer_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	balancer "github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// fleetNodes are the nodes of those names.
type fleetNodes []string

func (f fleetNodes) ListNodes(context.Context) (all []kube.Node, err error) {
	for _, name := range f {
		role := journal.RoleWorker
		if name[0] == 'p' {
			role = journal.RolePrimary
		}
		all = append(all, kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Role: role, InternalIP: "10.0.1." + name[1:]}})
	}
	return all, nil
}

// kindsOf are the actions of an EKCO in a cluster of these nodes.
func (w *world) kindsOf(names ...string) []actions.Definition { return w.kindsIn(fleetNodes(names)) }

func (w *world) kindsIn(nodes loadbalancer.Nodes) []actions.Definition {
	return loadbalancer.New(loadbalancer.Dependencies{
		Tasks:   hosttask.New(w.Cluster, w.Cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler)),
		Running: w.fleet, Image: "replicated/ekco:v1", Command: []string{"host-task", "load-balancer"},
		List: balancer.NewList(w.Cluster, hosttasksim.Namespace), Restarted: func() {}, Noted: func() {},
		Nodes: nodes, HAProxy: first, Trial: 90 * time.Second, SetKubeconfigs: []string{"host-task", "set-kubeconfig-server"},
	})
}

// outs is what the steps on nodes have left, and how the action has ended.
func (w *world) outs() map[string]string {
	all := map[string]string{}
	for event, err := range w.Store.Read(w.T.Context(), journal.Query{}) {
		if err != nil {
			w.T.Fatal(err)
		}
		body, err := event.Decode()
		if err != nil {
			w.T.Fatal(err)
		}
		if p, is := body.(*journal.StepDone); is && strings.HasPrefix(p.Step, "kubeconfig ") {
			all[p.Step] = string(p.Outputs)
		}
		if p, is := body.(*journal.ActionEnded); is {
			all["ended"] = string(p.Outcome) + " " + p.Reason
		}
	}
	return all
}

// changing requests a change of these nodes.
func (w *world) changing(names ...string) {
	for _, name := range names {
		w.Add(name)
		w.Set(name, hosttasksim.Program{Runs: w.fleet.Program(name), Trial: w.fleet.Trial(name)})
	}
	w.Request(journal.Kubeconfigs, journal.ActionRequested{
		Kind: journal.ActionChangeLoadBalancer, Input: journal.KubeconfigsInput{Server: "https://lb"},
	})
}

func TestARestartWhileANodeIsCutOffChangesNoOther(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		w.changing("w1", "w2", "w3")
		w.Set("w1", hosttasksim.Program{Run: 100 * time.Second, Failed: "the kubelet does not reach the API server"})
		r := w.Start(w.Config(w.kindsOf("w1", "w2", "w3")))
		w.Pass(50 * time.Second)
		w.Taint("w1", journal.TaintUnreachable)
		w.Pass(5 * time.Second)
		r.Halt()
		next := hosttask.New(w.Cluster, w.Cluster, hosttasksim.Namespace, slog.New(slog.DiscardHandler))
		if err := next.Sweep(t.Context(), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if len(w.Pods()) != 1 {
			t.Errorf("the pod that puts the former server back is removed: %q", w.Pods())
		}
		w.Start(w.Config(w.kindsOf("w1", "w2", "w3"))).End()
		for _, name := range []string{"w2", "w3"} {
			if server, _ := w.fleet.KubeletServer(name); server != "" {
				t.Errorf("%s is led to %q: %q", name, server, w.outs())
			}
		}
	})
}

func TestWhatRanWhenAnotherNodeFailedIsItsOutcome(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare)
		names := []string{"w1", "w2", "w3", "w4", "w5"}
		w.changing(names...)
		w.Set("w4", hosttasksim.Program{Failed: "it does not work"})
		w.Set("w5", hosttasksim.Program{Run: 20 * time.Second, Runs: w.fleet.Program("w5")})
		r := w.Start(w.Config(w.kindsOf(names...)))
		for w.outs()["kubeconfig w4"] == "" {
			w.Pass(time.Second)
		}
		w.Pass(2 * time.Second)
		r.Halt()
		w.Pass(30 * time.Second) // the program on w5 ends well
		w.Start(w.Config(w.kindsOf(names...))).End()
		server, restarts := w.fleet.KubeletServer("w5")
		if outs := w.outs(); server != "https://lb" || restarts != 1 || !strings.Contains(outs["kubeconfig w5"], `"result"`) || !strings.HasPrefix(outs["ended"], "partial ") {
			t.Errorf("w5 is led to %q, %d; %q", server, restarts, outs)
		}
	})
}
