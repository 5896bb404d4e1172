package loadbalancer_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/loadbalancer"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is what is told of a node.
func line(name, facts string) string { return "LoadBalancer " + name + "  " + facts }

func TestOfEachNodeIsToldWhatDecides(t *testing.T) {
	cluster := kubesim.New()
	p1, w1 := cluster.AddNode("p1", journal.RolePrimary), cluster.AddNode("w1", journal.RoleWorker)
	nudge := &observers.Nudge{}
	known := map[string]journal.LoadBalancerFacts{"w9": {NodeUID: "uid-w9", Address: "10.0.0.9", Ready: true}}
	of := func(uid, address, more string) string {
		return `{"node_uid":"` + uid + `","address":"` + address + `"` + more + `}`
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nudge.Over(loadbalancer.New(cluster, known)) }
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true,"ready":true`)), line("w1", of(w1.UID, w1.Facts.InternalIP, `,"ready":true`)),
			line("w9", "gone: its node is no more: absent at start"))
		b.Pass(time.Hour)
		b.WroteThings()
		cluster.LoseNode("p1")
		nudge.Look()
		b.Settle()
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true`)))
		cluster.ReturnNode("p1")
		another := cluster.ReplaceNode("w1")
		nudge.Look()
		b.Settle()
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true,"ready":true`)),
			line("w1", "gone: its node is no more: replaced by uid "+another.UID), line("w1", of(another.UID, another.Facts.InternalIP, `,"ready":true`)))
		cluster.RemoveNode("w1")
		nudge.Look()
		b.Settle()
		b.WroteThings(line("w1", "gone: its node is no more: deleted"))
	})
}

// list is a cluster that does not change.
type list []kube.Node

func (l list) ListNodes(context.Context) ([]kube.Node, error) { return l, nil }

func TestACordonedNodeIsWorkedOn(t *testing.T) {
	tainted := func(name, key string) kube.Node {
		return kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Taints: []journal.Taint{{Key: key, Effect: "NoSchedule"}}}}
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(list{tainted("a", journal.TaintUnschedulable), tainted("b", journal.TaintNetworkUnavailable)}, nil)}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","ready":true}`), line("b", `{"node_uid":"uid-b"}`))
	})
}

func TestSwitchedOffItIsSaidOfWhatIsKnown(t *testing.T) {
	known := map[string]journal.LoadBalancerFacts{"w1": {NodeUID: "uid-w1", Ready: true}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.Off(known, "enable_internal_load_balancer is off; what is on the node stays as it is")}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("w1", "gone: enable_internal_load_balancer is off; what is on the node stays as it is"))
		b.Pass(time.Hour)
		b.WroteThings()
	})
}
