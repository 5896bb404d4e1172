package nodes

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is the actor of events about nodes.
const Actor = "observer/node"

// Options of [New].
type Options struct {
	// Nodes is the source of all Nodes.
	Nodes kube.Source
	// Known has the nodes that exist according to the journal. Only an old journal has several nodes with one name.
	Known []kube.Node
	// Settles is how long a flapping node must be lost before that loss is recorded (default 1m). It must be less than
	// the time after which EKCO acts on a lost node.
	Settles time.Duration
	// Labels names labels whose values are facts of a node, in addition to the labels that EKCO always reads.
	Labels []string
	// Recorded is called after a node was recorded. It must not block. It may be nil.
	Recorded func()
	// Also receives all Nodes, whether or not their facts change. It may be nil.
	Also observers.Sink
}

// New returns the source of facts about nodes. The source is essential.
func New(options Options) observers.Source {
	settles, relabels := cmp.Or(options.Settles, defaultSettles), newLabelLimit()
	recorded := options.Recorded
	if recorded == nil {
		recorded = func() {}
	}
	return observers.Watch(observers.Watched[node]{
		Name: "nodes", From: options.Nodes, Object: &corev1.Node{}, Read: reading(options.Labels), Essential: true, Also: options.Also,
		Noun: observers.Noun[node]{
			Observed: func(name string, n node) journal.Draft {
				recorded()
				return observed(name, n)
			},
			Gone: func(name string, n node, reason string) journal.Draft {
				recorded()
				return gone(name, n, reason)
			},
			Equal: equal, UID: uid, HappenedAt: happenedAt, Carry: carry,
			ChooseFacts: func(was *node, now node, at time.Time) (node, time.Time) {
				toRecord, again := factsToRecord(was, now, at, settles)
				return relabels.limitLabels(was, toRecord, again, at)
			},
			Known: func(yield func(string, node) bool) {
				for _, known := range options.Known {
					if !yield(known.Name, node{uid: known.UID, facts: known.Facts}) {
						return
					}
				}
			},
		},
	})
}

// node has the facts of a node; the node's name is the key. It is small, because there may be thousands of nodes, each
// twice in memory.
type node struct {
	uid   string
	facts journal.NodeFacts
	// flaps is the history of losses, or nil. In recorded facts it is set only when flapping has ended.
	flaps *flapHistory
}

// reading returns a function that reads a node with the given labels.
func reading(labels []string) func(runtime.Object) (name string, n node, ok bool) {
	return func(obj runtime.Object) (name string, n node, ok bool) {
		o, ok := obj.(*corev1.Node)
		if !ok {
			return "", node{}, false
		}
		now := kube.NodeLabelled(o, labels)
		return now.Name, node{uid: now.UID, facts: now.Facts}, true
	}
}

func uid(n node) string { return n.uid }

func equal(a, b node) bool { return a.facts.Equal(b.facts) }

func observed(name string, n node) journal.Draft {
	payload := journal.NodeObserved{NodeFacts: n.facts}
	if n.flaps != nil {
		payload.Flaps, payload.UnreachableFor = n.flaps.times, n.flaps.lostFor
	}
	return journal.Draft{
		Type: journal.TypeNodeObserved, Actor: Actor, Subject: journal.NodeSubject(name, n.uid), Payload: payload,
	}
}

func gone(name string, n node, reason string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeGone, Actor: Actor, Subject: journal.NodeSubject(name, n.uid),
		Payload: journal.NodeGone{Reason: reason},
	}
}

// happenedAt returns when the facts changed: the time of a new taint according to the API, and otherwise now.
func happenedAt(before, after node) time.Time {
	newest := time.Time{}
	for _, taint := range after.facts.Taints {
		if taint.TimeAdded.After(newest) && !slices.Contains(before.facts.Taints, taint) {
			newest = taint.TimeAdded
		}
	}
	now := time.Now()
	if newest.IsZero() || newest.After(now) {
		return now
	}
	return newest
}
