// Package loadbalancer is where facts come from of the nodes on which there is to be a load balancer:
// what of a node decides what is on it, and on the others, and since when HAProxy runs there. Both are
// listed now and then, and at once when a node has come, gone or changed, as those who watch them tell.
package loadbalancer

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is under whom the facts are recorded.
const Actor = "observer/loadbalancer"

const machine = "loadbalancer"

// Nodes is what is asked of the cluster.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Running looks at HAProxy's pods, by the names of their nodes, and at API servers.
type Running interface {
	Pods(ctx context.Context) (map[string]loadbalancer.Pod, error)
	Serves(ctx context.Context, address string) (names []string, err error)
}

// apart is how far apart two looks are at least: of nodes that come one after the other, and of
// actions that end so.
const apart = 2 * time.Second

// listTimeout is the longest time that the nodes and pods may take to be listed.
const listTimeout = 10 * time.Second

// New returns the source. known is what the journal has, by name; backends are the addresses by which HAProxy
// reaches the API servers of nodes, or did, the oldest first, by the names of the nodes.
func New(nodes Nodes, running Running, known map[string]journal.LoadBalancerFacts, backends map[string][]string) observers.Source {
	servers := newServers(running, known, backends)
	return observers.Poll(observers.Polled[journal.LoadBalancerFacts]{
		Name: "nodes of the load balancer", Noun: noun(known, ""), OfAPI: true, Apart: apart, Timeout: listTimeout + 2*serversTimeout,
		Ask: func(ctx context.Context) (map[string]journal.LoadBalancerFacts, error) {
			list, err := nodes.ListNodes(ctx)
			if err != nil {
				return nil, kube.Lacking(err, "list", "nodes")
			}
			pods, err := running.Pods(ctx)
			if err != nil {
				return nil, err
			}
			all := make(map[string]journal.LoadBalancerFacts, len(list))
			for _, node := range list {
				all[node.Name] = journal.LoadBalancerFacts{
					NodeUID: node.UID, Address: addressOf(node),
					Primary: node.Facts.Role == journal.RolePrimary, Ready: works(node.Facts),
					Started: pods[node.Name].Started,
				}
			}
			servers.ask(ctx, all)
			return all, nil
		},
	})
}

// Off returns a source that looks nowhere. Of what is known it tells why that does not concern EKCO
// any more.
func Off(known map[string]journal.LoadBalancerFacts, why string) observers.Source {
	return observers.Poll(observers.Polled[journal.LoadBalancerFacts]{
		Name: "nodes of the load balancer", Noun: noun(known, why),
		Ask: func(context.Context) (map[string]journal.LoadBalancerFacts, error) { return nil, nil },
	})
}

// addressOf is what a node says of itself, unless that is no address: HAProxy takes no configuration with
// such a primary, and all nodes would have to do without any change.
func addressOf(node kube.Node) string {
	if loadbalancer.CheckPrimary(node.Facts.InternalIP) != nil {
		return ""
	}
	return node.Facts.InternalIP
}

// works reports whether a pod can do something on the node. One on which none is to be scheduled
// is worked on all the same.
func works(facts journal.NodeFacts) bool {
	for _, taint := range facts.Taints {
		if taint.Key != journal.TaintUnschedulable {
			return false
		}
	}
	return true
}

// noun tells of what is gone, for that reason unless it is empty.
func noun(known map[string]journal.LoadBalancerFacts, gone string) observers.Noun[journal.LoadBalancerFacts] {
	return observers.Noun[journal.LoadBalancerFacts]{
		Observed: func(node string, now journal.LoadBalancerFacts) journal.Draft {
			facts, err := json.Marshal(now)
			if err != nil {
				panic(err) // no value of this type cannot be encoded
			}
			return draft(journal.TypeThingObserved, node, journal.ThingObserved{Machine: machine, Facts: facts})
		},
		Gone: func(node string, _ journal.LoadBalancerFacts, reason string) journal.Draft {
			if reason = "its node is no more: " + reason; gone != "" {
				reason = gone
			}
			return draft(journal.TypeThingGone, node, journal.ThingGone{Machine: machine, Reason: reason})
		},
		Equal: func(a, b journal.LoadBalancerFacts) bool {
			same := a.Started.Equal(b.Started)
			a.Started = b.Started
			return same && reflect.DeepEqual(a, b)
		},
		UID:   func(facts journal.LoadBalancerFacts) string { return facts.NodeUID },
		Known: maps.All(known),
	}
}

func draft(event journal.Type, node string, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: Actor, Subject: journal.LoadBalancer(node), Payload: payload}
}

// listInterval is how often the ConfigMap is read: installers delete it, and go on.
const listInterval = 15 * time.Second

// NewList returns the source of the ConfigMap that says which nodes have theirs in step. That there is
// none is a fact. off says why nobody wants to know, empty if somebody does; known is what the journal
// has, by name.
func NewList(list *loadbalancer.List, known map[string]journal.LoadBalancerListFacts, off string) observers.Source {
	return observers.PollOne(observers.PolledOne[journal.LoadBalancerListFacts]{
		Machine: machine, Subject: list.Subject(), Get: list.Read, Known: known, Off: off, Interval: listInterval,
		UID: func(journal.LoadBalancerListFacts) string { return "" }, // its name is its identity
	})
}
