// Package loadbalancer is the source of facts about the nodes with a load balancer: all that the configuration of load
// balancers depends on, and since when HAProxy runs on a node. It lists nodes and pods at intervals, and at once when
// the source of nodes triggers it.
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

// Actor is the actor of events about load balancers.
const Actor = "observer/loadbalancer"

const machine = "loadbalancer"

// Nodes lists the nodes of the cluster.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Running lists HAProxy's pods by the names of their nodes, and connects to API servers.
type Running interface {
	Pods(ctx context.Context) (map[string]loadbalancer.Pod, error)
	Serves(ctx context.Context, address string) (names []string, err error)
}

// minReadInterval is the shortest time between two reads when nodes join or actions end one after the other.
const minReadInterval = 2 * time.Second

// listTimeout limits one list of the nodes and pods.
const listTimeout = 10 * time.Second

// New returns the source. known has the facts in the journal, by name. backends has, by node name, the present and
// former addresses of the node's API server in HAProxy's configuration, oldest first.
func New(nodes Nodes, running Running, known map[string]journal.LoadBalancerFacts, backends map[string][]string) observers.Source {
	servers := newServers(running, known, backends)
	return observers.Poll(observers.Polled[journal.LoadBalancerFacts]{
		Name: "nodes of the load balancer", Noun: noun(known, ""), OfAPI: true, Apart: minReadInterval, Timeout: listTimeout + 2*serversTimeout,
		Ask: func(ctx context.Context) (map[string]journal.LoadBalancerFacts, error) {
			list, err := nodes.ListNodes(ctx)
			if err != nil {
				return nil, kube.NamePermission(err, "list", "nodes")
			}
			pods, err := running.Pods(ctx)
			if err != nil {
				return nil, err
			}
			all := make(map[string]journal.LoadBalancerFacts, len(list))
			for _, node := range list {
				all[node.Name] = journal.LoadBalancerFacts{
					NodeUID: node.UID, Address: addressOf(node),
					Primary: node.Facts.Role == journal.RolePrimary, Ready: kube.CanRunPods(node.Facts),
					Started: pods[node.Name].Started,
				}
			}
			servers.ask(ctx, all)
			return all, nil
		},
	})
}

// Off returns a source that reads nothing. It records known nodes as gone, with why as the reason.
func Off(known map[string]journal.LoadBalancerFacts, why string) observers.Source {
	return observers.Poll(observers.Polled[journal.LoadBalancerFacts]{
		Name: "nodes of the load balancer", Noun: noun(known, why),
		Ask: func(context.Context) (map[string]journal.LoadBalancerFacts, error) { return nil, nil },
	})
}

// addressOf returns the node's InternalIP, or "" if it is not valid. HAProxy rejects a configuration with an invalid
// address, and then no node could be updated.
func addressOf(node kube.Node) string {
	if loadbalancer.CheckPrimary(node.Facts.InternalIP) != nil {
		return ""
	}
	return node.Facts.InternalIP
}

// noun returns the definition of the records. gone is the reason to record for nodes that are gone, or "" for the
// observed reason.
func noun(known map[string]journal.LoadBalancerFacts, gone string) observers.Noun[journal.LoadBalancerFacts] {
	return observers.Noun[journal.LoadBalancerFacts]{
		Observed: func(node string, now journal.LoadBalancerFacts) journal.Draft {
			facts, err := json.Marshal(now)
			if err != nil {
				panic(err) // a value of this type can always be encoded
			}
			return draft(journal.TypeThingObserved, node, journal.ThingObserved{Machine: machine, Facts: facts})
		},
		Gone: func(node string, _ journal.LoadBalancerFacts, reason string) journal.Draft {
			if reason = "its node is gone: " + reason; gone != "" {
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

// listInterval is how often EKCO reads the ConfigMap. Installers delete the ConfigMap and do not wait.
const listInterval = 15 * time.Second

// NewList returns the source of the ConfigMap that lists the nodes with an up-to-date load balancer. A missing
// ConfigMap is a fact, too. off is the setting that switches the source off, or "". known has the facts in the journal,
// by name.
func NewList(list *loadbalancer.List, known map[string]journal.LoadBalancerListFacts, off string) observers.Source {
	return observers.PollOne(observers.PolledOne[journal.LoadBalancerListFacts]{
		Machine: machine, Subject: list.Subject(), Get: list.Read, Known: known, Off: off, Interval: listInterval,
		UID: func(journal.LoadBalancerListFacts) string { return "" }, // its name identifies it
	})
}
