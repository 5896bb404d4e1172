// Package loadbalancer is where facts come from of the nodes on which there is to be a load balancer:
// what of a node decides what is on it, and on the others. The nodes are listed now and then, and at
// once when one of them has come, gone or changed, as those who watch them tell.
package loadbalancer

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/replicatedhq/ekco/internal/kube"
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

// New returns the source. known is what the journal has, by name.
func New(nodes Nodes, known map[string]journal.LoadBalancerFacts) observers.Source {
	return observers.Poll(observers.Polled[journal.LoadBalancerFacts]{
		Name: "nodes of the load balancer", Noun: noun(known, ""), OfAPI: true,
		Ask: func(ctx context.Context) (map[string]journal.LoadBalancerFacts, error) {
			list, err := nodes.ListNodes(ctx)
			if err != nil {
				return nil, kube.Lacking(err, "list", "nodes")
			}
			all := make(map[string]journal.LoadBalancerFacts, len(list))
			for _, node := range list {
				all[node.Name] = journal.LoadBalancerFacts{
					NodeUID: node.UID, Address: node.Facts.InternalIP,
					Primary: node.Facts.Role == journal.RolePrimary, Ready: works(node.Facts),
				}
			}
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
		Equal: func(a, b journal.LoadBalancerFacts) bool { return a == b },
		UID:   func(facts journal.LoadBalancerFacts) string { return facts.NodeUID },
		Known: maps.All(known),
	}
}

func draft(event journal.Type, node string, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: Actor, Subject: journal.LoadBalancer(node), Payload: payload}
}
