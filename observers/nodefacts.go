package observers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// nodeFacts compares the cluster's nodes with the journal's. It is not safe for
// concurrent use; the outbox guards it.
type nodeFacts struct {
	// current are the nodes that exist, by name.
	current map[string]kube.Node
	// recorded are the nodes that exist according to the journal, by name. More
	// than one of a name can only come from an old journal.
	recorded map[string][]kube.Node
	// listed: a whole list was seen.
	listed  bool
	pending pending
	// flaps are the nodes that were lost lately, by name.
	flaps map[string]*flaps
	// settles is how long a node that flaps must be lost for that to be told.
	settles time.Duration
}

// nodeChanges is a batch of differences.
type nodeChanges struct {
	drafts []journal.Draft
	// now is the state of each changed name; absent when there is no such node.
	now   map[string]kube.Node
	taken pending
	// since is when the oldest of them happened, zero when unknown.
	since time.Time
}

func newNodeFacts(known []kube.Node, settles time.Duration) nodeFacts {
	recorded := make(map[string][]kube.Node, len(known))
	for _, node := range known {
		recorded[node.Name] = append(recorded[node.Name], node)
	}
	return nodeFacts{
		current: make(map[string]kube.Node), recorded: recorded,
		flaps: make(map[string]*flaps), settles: cmp.Or(settles, defaultSettles),
	}
}

// see takes a node as it is now.
func (n *nodeFacts) see(node kube.Node) {
	before, ok := n.current[node.Name]
	if ok && before.UID == node.UID && before.Facts.Equal(node.Facts) {
		return
	}
	n.current[node.Name] = node
	n.follow(node)
	n.pending.add(node.Name, change{at: happenedAt(before.Facts, node.Facts)})
}

// lose takes the news that the node of that name and UID no longer exists.
func (n *nodeFacts) lose(name, uid string) {
	if n.current[name].UID != uid {
		return
	}
	delete(n.current, name)
	delete(n.flaps, name)
	n.pending.add(name, change{at: time.Now()})
}

// replace takes a whole list.
func (n *nodeFacts) replace(nodes []kube.Node) {
	how := change{firstList: !n.listed}
	n.listed = true
	listed := make(map[string]kube.Node, len(nodes))
	for _, node := range nodes {
		listed[node.Name] = node
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		before, ok := n.current[name]
		n.current[name] = listed[name]
		n.follow(listed[name])
		if !ok || before.UID != listed[name].UID || !before.Facts.Equal(listed[name].Facts) {
			n.pending.add(name, how)
		}
	}
	for name := range n.current {
		if _, ok := listed[name]; !ok {
			delete(n.current, name)
			delete(n.flaps, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.recorded)) {
		if _, ok := listed[name]; !ok {
			n.pending.add(name, how)
		}
	}
}

// due returns what the journal lacks.
func (n *nodeFacts) due() nodeChanges {
	now := time.Now()
	n.ripen(now)
	changes := nodeChanges{taken: n.pending.take(), now: make(map[string]kube.Node)}
	for _, name := range changes.taken.order {
		how := changes.taken.changes[name]
		drafts := n.difference(name, how, now)
		if node, ok := n.current[name]; ok {
			node.Facts = n.told(node, now).NodeFacts
			changes.now[name] = node
		}
		if len(drafts) > 0 {
			changes.drafts = append(changes.drafts, drafts...)
			changes.since = oldest(changes.since, how.at)
		}
	}
	return changes
}

// difference returns the drafts that bring the journal up to date on a name.
func (n *nodeFacts) difference(name string, how change, at time.Time) []journal.Draft {
	var drafts []journal.Draft
	now, exists := n.current[name]
	told := n.told(now, at)
	recorded := false
	for _, was := range n.recorded[name] {
		switch {
		case !exists && how.firstList:
			drafts = append(drafts, nodeGone(was, "absent at start"))
		case !exists:
			drafts = append(drafts, nodeGone(was, "deleted"))
		case was.UID != now.UID:
			drafts = append(drafts, nodeGone(was, "replaced by uid "+now.UID))
		default:
			recorded = was.Facts.Equal(told.NodeFacts)
		}
	}
	if exists && !recorded {
		drafts = append(drafts, nodeObserved(now, told))
	}
	return drafts
}

// written takes note that the changes are in the journal.
func (n *nodeFacts) written(changes nodeChanges) {
	for _, name := range changes.taken.order {
		if node, ok := changes.now[name]; ok {
			n.recorded[name] = []kube.Node{node}
		} else {
			delete(n.recorded, name)
		}
	}
}

func nodeObserved(node kube.Node, told journal.NodeObserved) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeObserved, Actor: ActorNode,
		Subject: journal.NodeSubject(node.Name, node.UID),
		Payload: told,
	}
}

func nodeGone(node kube.Node, reason string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeNodeGone, Actor: ActorNode,
		Subject: journal.NodeSubject(node.Name, node.UID),
		Payload: journal.NodeGone{Reason: reason},
	}
}

// happenedAt returns when facts changed: when a taint was added, by the API's
// word, else now.
func happenedAt(before, after journal.NodeFacts) time.Time {
	newest := time.Time{}
	for _, taint := range after.Taints {
		if taint.TimeAdded.After(newest) && !slices.Contains(before.Taints, taint) {
			newest = taint.TimeAdded
		}
	}
	now := time.Now()
	if newest.IsZero() || newest.After(now) {
		return now
	}
	return newest
}
