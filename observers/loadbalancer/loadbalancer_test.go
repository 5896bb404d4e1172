package loadbalancer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	client "github.com/replicatedhq/ekco/internal/loadbalancer"
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
	nudge, running := &observers.Nudge{}, pods{"w1": {Name: "haproxy-w1", Runs: true, Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	known := map[string]journal.LoadBalancerFacts{"w9": {NodeUID: "uid-w9", Address: "10.0.0.9", Ready: true}}
	of := func(uid, address, more string) string {
		return `{"node_uid":"` + uid + `","address":"` + address + `"` + more + `}`
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nudge.Over(loadbalancer.New(cluster, running, known, nil)) }
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true,"ready":true,"asked":true,"answers":["`+p1.Facts.InternalIP+`"]`)), line("w1", of(w1.UID, w1.Facts.InternalIP, `,"ready":true,"started":"2026-01-01T00:00:00Z"`)),
			line("w9", "gone: its node is gone: absent at start"))
		b.Pass(time.Hour)
		b.WroteThings()
		cluster.LoseNode("p1")
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true,"asked":true,"answers":["`+p1.Facts.InternalIP+`"]`)))
		cluster.ReturnNode("p1")
		another := cluster.ReplaceNode("w1")
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("p1", of(p1.UID, p1.Facts.InternalIP, `,"primary":true,"ready":true,"asked":true,"answers":["`+p1.Facts.InternalIP+`"]`)),
			line("w1", "gone: its node is gone: replaced by uid "+another.UID), line("w1", of(another.UID, another.Facts.InternalIP, `,"ready":true,"started":"2026-01-01T00:00:00Z"`)))
		cluster.RemoveNode("w1")
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("w1", "gone: its node is gone: deleted"))
	})
}

// pods are those of HAProxy.
type pods map[string]client.Pod

func (pods) Serves(context.Context, string) ([]string, error) { return nil, nil }

func (p pods) Pods(context.Context) (map[string]client.Pod, error) { return p, nil }

// list is a cluster that does not change.
type list []kube.Node

func (l list) ListNodes(context.Context) ([]kube.Node, error) { return l, nil }

func TestACordonedNodeIsWorkedOn(t *testing.T) {
	tainted := func(name, key string) kube.Node {
		return kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Taints: []journal.Taint{{Key: key, Effect: "NoSchedule"}}}}
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(list{tainted("a", journal.TaintUnschedulable), tainted("b", journal.TaintNetworkUnavailable)}, pods{}, nil, nil)}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","ready":true}`), line("b", `{"node_uid":"uid-b"}`))
	})
}

func TestWhatIsNoAddressIsNone(t *testing.T) {
	at := func(name, address string) kube.Node {
		return kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: address}}
	}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(list{at("a", "10.0.0.1,10.0.0.2"), at("b", "10.0.0.3 weight 9\n"), at("c", "fd00::1")}, pods{}, nil, nil)}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","primary":true,"ready":true}`), line("b", `{"node_uid":"uid-b","primary":true,"ready":true}`),
			line("c", `{"node_uid":"uid-c","address":"fd00::1","primary":true,"ready":true,"asked":true,"answers":["fd00::1"]}`))
	})
}

func TestSwitchedOffItIsSaidOfWhatIsKnown(t *testing.T) {
	known := map[string]journal.LoadBalancerFacts{"w1": {NodeUID: "uid-w1", Ready: true}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.Off(known, "enable_internal_load_balancer is off; the files on the node stay as they are")}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("w1", "gone: enable_internal_load_balancer is off; the files on the node stay as they are"))
		b.Pass(time.Hour)
		b.WroteThings()
	})
}

func TestThatTheListIsNotThereIsAFact(t *testing.T) {
	objects := kubesim.NewObjects()
	ref := kube.Ref{Version: "v1", Resource: "configmaps", Namespace: "kurl", Name: "update-internallb"}
	line := func(facts string) string { return "LoadBalancerList kurl/update-internallb  " + facts }
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.NewList(client.NewList(objects, "kurl"), nil, "")}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("{}"))
		uid := objects.Put(ref, `{"data":{"update-internallb":"a true 10.0.0.1"}}`)
		b.Pass(20 * time.Second)
		b.WroteThings(line(`{"uid":"` + uid + `","sum":"` + journal.SumOfLoadBalancers("a true 10.0.0.1") + `"}`))
		b.Pass(time.Hour)
		b.WroteThings()
		objects.Remove(ref)
		b.Pass(20 * time.Second)
		b.WroteThings(line("{}"))
		objects.Forbid("get configmaps")
		b.Pass(time.Hour)
		b.WroteThings()
	})
}

func TestSwitchedOffNobodyReadsTheList(t *testing.T) {
	known := map[string]journal.LoadBalancerListFacts{"kurl/update-internallb": {UID: "u-1"}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.NewList(client.NewList(kubesim.NewObjects(), "kurl"), known, "it is switched off")}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings("LoadBalancerList kurl/update-internallb  gone: it is switched off")
	})
}

// unlisted are pods of which nobody knows anything.
type unlisted struct{}

func (unlisted) Serves(context.Context, string) ([]string, error) { return nil, nil }

func (unlisted) Pods(context.Context) (map[string]client.Pod, error) {
	return nil, errors.New("the API server is busy")
}

// TestWhereNobodyKnowsWhatRunsNothingIsTold: else no HAProxy would run any more.
func TestWhereNobodyKnowsWhatRunsNothingIsTold(t *testing.T) {
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(list{{Name: "a", UID: "uid-a"}}, unlisted{}, nil, nil)}
		}
	}, func(b *observerstest.Bench) {
		b.Pass(time.Hour)
		b.WroteThings()
	})
}

func TestThatHAProxyWasStartedAnewIsTold(t *testing.T) {
	started := pods{"a": {Name: "haproxy-a", Runs: true, Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	known := map[string]journal.LoadBalancerFacts{"a": {NodeUID: "uid-a", Ready: true, Started: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(list{{Name: "a", UID: "uid-a"}}, started, known, nil)}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","ready":true,"started":"2026-01-01T00:00:00Z"}`))
	})
}

// flaky is a cluster whose API servers answer at some addresses.
type flaky struct {
	pods
	mu      sync.Mutex
	answers []string
	// owners are the nodes whose names are in the certificates at some addresses.
	owners map[string]string
}

func (f *flaky) set(answers ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = answers
}

func (f *flaky) Serves(_ context.Context, address string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.answers, address) {
		return nil, errors.New("connection refused")
	}
	return []string{"kubernetes", f.owners[address]}, nil
}

// TestAnAPIServerOfAnotherNodeIsNoAnswer: at the address of a bridge, that of EKCO's own host answers.
func TestAnAPIServerOfAnotherNodeIsNoAnswer(t *testing.T) {
	at := func(name, address string) kube.Node {
		return kube.Node{Name: name, UID: "uid-" + name, Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: address}}
	}
	servers, nodes := &flaky{owners: map[string]string{"172.17.0.1": "a", "10.0.0.1": "a", "10.0.0.2": "b"}}, list{at("a", "172.17.0.1"), at("b", "172.17.0.1")}
	backends := map[string][]string{"a": {"10.0.0.1", "172.17.0.1"}, "b": {"10.0.0.2"}}
	known := map[string]journal.LoadBalancerFacts{"a": {NodeUID: "uid-a"}, "b": {NodeUID: "uid-b"}}
	seen := func(name, answers string) string {
		return line(name, `{"node_uid":"uid-`+name+`","address":"172.17.0.1","primary":true,"ready":true,"asked":true`+answers+`}`)
	}
	nudge := &observers.Nudge{}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nudge.Over(loadbalancer.New(nodes, servers, known, backends)) }
		servers.set("172.17.0.1")
	}, func(b *observerstest.Bench) {
		b.WroteThings(seen("a", `,"answers":["172.17.0.1"]`), seen("b", ""))
		servers.set("172.17.0.1", "10.0.0.1", "10.0.0.2")
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(seen("a", `,"answers":["10.0.0.1"]`), seen("b", `,"answers":["10.0.0.2"]`))
	})
}

func TestFormerAddressesOfAPrimaryAreAskedToo(t *testing.T) {
	servers, nodes := &flaky{}, list{{Name: "a", UID: "uid-a", Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: "172.17.0.1"}}}
	servers.set("10.0.0.1")
	nudge := &observers.Nudge{}
	known := map[string]journal.LoadBalancerFacts{"a": {NodeUID: "uid-a", Address: "10.0.0.1", Primary: true, Ready: true}, "w": {NodeUID: "uid-w", Address: "10.0.0.9"}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nudge.Over(loadbalancer.New(nodes, servers, known, nil)) }
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","address":"172.17.0.1","primary":true,"ready":true,"asked":true,"answers":["10.0.0.1"]}`),
			line("w", "gone: its node is gone: absent at start"))
		servers.set()
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("a", `{"node_uid":"uid-a","address":"172.17.0.1","primary":true,"ready":true,"asked":true}`))
		nodes[0].Facts.Role = journal.RoleWorker // it is also asked after its label was removed
		servers.set("10.0.0.1", "172.17.0.1")
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("a", `{"node_uid":"uid-a","address":"172.17.0.1","ready":true,"asked":true,"answers":["10.0.0.1","172.17.0.1"]}`))
		nodes[0].UID = "uid-b" // another node of the name has no other address
		nudge.Look()
		b.Pass(3 * time.Second)
		b.WroteThings(line("a", "gone: its node is gone: replaced by uid uid-b"), line("a", `{"node_uid":"uid-b","address":"172.17.0.1","ready":true}`))
	})
}

// blackHole is a cluster with an address that does not answer at all, as that of a machine that is off.
type blackHole struct{ at string }

func (b *blackHole) Serves(ctx context.Context, address string) ([]string, error) {
	if address != b.at {
		return nil, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b *blackHole) Pods(context.Context) (map[string]client.Pod, error) {
	time.Sleep(time.Second) // a list takes its time
	return nil, nil
}

func TestAMachineThatIsOffDoesNotKeepNodesFromBeingObserved(t *testing.T) {
	cluster := kubesim.New()
	p1, w1 := cluster.AddNode("p1", journal.RolePrimary), cluster.AddNode("w1", journal.RoleWorker)
	nudge, running := &observers.Nudge{}, &blackHole{at: p1.Facts.InternalIP}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return nudge.Over(loadbalancer.New(cluster, running, nil, nil)) }
	}, func(b *observerstest.Bench) {
		b.Pass(time.Minute)
		b.WroteThings(line("p1", `{"node_uid":"`+p1.UID+`","address":"`+p1.Facts.InternalIP+`","primary":true,"ready":true,"asked":true}`),
			line("w1", `{"node_uid":"`+w1.UID+`","address":"`+w1.Facts.InternalIP+`","ready":true}`))
		cluster.LoseNode("w1")
		nudge.Look()
		b.Pass(time.Minute)
		b.WroteThings(line("w1", `{"node_uid":"`+w1.UID+`","address":"`+w1.Facts.InternalIP+`"}`))
	})
}

func TestABackendOfTheJournalIsAskedToo(t *testing.T) {
	servers, nodes := &flaky{}, list{{Name: "a", UID: "uid-a", Facts: journal.NodeFacts{Role: journal.RolePrimary, InternalIP: "172.17.0.1"}}}
	servers.set("10.0.0.1")
	known := map[string]journal.LoadBalancerFacts{"a": {NodeUID: "uid-a", Address: "172.17.0.1", Primary: true, Ready: true, Asked: true}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{loadbalancer.New(nodes, servers, known, map[string][]string{"a": {"10.0.0.1"}})}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("a", `{"node_uid":"uid-a","address":"172.17.0.1","primary":true,"ready":true,"asked":true,"answers":["10.0.0.1"]}`))
	})
}
