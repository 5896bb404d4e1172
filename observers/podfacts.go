package observers

import (
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// podFacts compares the terminating pods of watched nodes with the journal's.
// Pods that nobody has asked to end are not kept. It is not safe for concurrent
// use; the outbox guards it.
type podFacts struct {
	nodes map[string]*nodePods
	// everywhere: a list of the pods of all nodes was seen and is kept up to
	// date, so that a node that becomes watched is known already.
	everywhere bool
	// pending holds names of nodes.
	pending pending
}

// nodePods are the terminating pods of one node, by UID.
type nodePods struct {
	// uid of the node, empty while it is not watched.
	uid string
	// listed: a whole list was seen. Before, absence means nothing.
	listed   bool
	current  map[string]kube.Pod
	recorded map[string]recordedPod
}

func (n *nodePods) watched() bool { return n.uid != "" }

// recordedPod is a pod as the journal has it.
type recordedPod struct {
	kube.Pod
	nodeUID string
}

// podChanges is a batch of differences.
type podChanges struct {
	drafts []journal.Draft
	// now is what the journal has of each changed node with this batch.
	now   map[string]map[string]recordedPod
	taken pending
	// since is when the oldest of them happened, zero when unknown.
	since time.Time
}

func newPodFacts(known Known) podFacts {
	p := podFacts{nodes: make(map[string]*nodePods)}
	for _, node := range known.Nodes {
		for _, pod := range known.Pods[node.UID] {
			p.node(node.Name).recorded[pod.UID] = recordedPod{Pod: kube.Pod{PodRef: pod}, nodeUID: node.UID}
		}
	}
	return p
}

func (p *podFacts) node(name string) *nodePods {
	n := p.nodes[name]
	if n == nil {
		n = &nodePods{current: make(map[string]kube.Pod), recorded: make(map[string]recordedPod)}
		p.nodes[name] = n
	}
	return n
}

// watch sets the nodes whose pods are reported: UID by name.
func (p *podFacts) watch(want map[string]string) {
	for name, n := range p.nodes {
		if uid, ok := want[name]; n.watched() && uid != n.uid || !ok && len(n.recorded) > 0 {
			n.uid = ""
			n.listed = false
			if !p.everywhere {
				clear(n.current)
			}
			p.pending.add(name, change{})
		}
	}
	for name, uid := range want {
		if n := p.node(name); !n.watched() {
			n.uid = uid
			n.listed = p.everywhere
			p.pending.add(name, change{})
		}
	}
}

// see takes a pod as it is now; asked is when it was asked to end.
func (p *podFacts) see(name string, pod kube.Pod, asked time.Time) {
	if pod.DeletionTimestamp.IsZero() {
		return
	}
	n := p.node(name)
	before, ok := n.current[pod.UID]
	if ok && before.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
		return
	}
	n.current[pod.UID] = pod
	p.pending.add(name, change{at: asked})
}

// lose takes the news that a pod no longer exists.
func (p *podFacts) lose(name, uid string) {
	n := p.nodes[name]
	if n == nil {
		return
	}
	if _, ok := n.current[uid]; ok {
		delete(n.current, uid)
		p.pending.add(name, change{at: time.Now()})
	}
}

// replace takes a whole list of a node's pods.
func (p *podFacts) replace(name string, pods []kube.Pod) {
	n := p.node(name)
	n.listed = true
	clear(n.current)
	for _, pod := range pods {
		if !pod.DeletionTimestamp.IsZero() {
			n.current[pod.UID] = pod
		}
	}
	p.pending.add(name, change{})
}

// replaceAll takes a whole list of all nodes' pods.
func (p *podFacts) replaceAll(pods map[string][]kube.Pod) {
	p.everywhere = true
	for name := range p.nodes {
		if _, ok := pods[name]; !ok {
			p.replace(name, nil)
		}
	}
	for name, on := range pods {
		p.replace(name, on)
	}
}

// narrow says that only watched nodes' pods are kept up to date from now on.
func (p *podFacts) narrow() {
	p.everywhere = false
	for name, n := range p.nodes {
		if n.watched() {
			continue
		}
		clear(n.current)
		if len(n.recorded) == 0 {
			delete(p.nodes, name)
		}
	}
}

// due returns what the journal lacks.
func (p *podFacts) due() podChanges {
	changes := podChanges{taken: p.pending.take(), now: make(map[string]map[string]recordedPod)}
	for _, name := range slices.Sorted(slices.Values(changes.taken.order)) {
		n := p.nodes[name]
		if n == nil {
			continue
		}
		drafts, now := n.difference(name)
		changes.now[name] = now
		if len(drafts) > 0 {
			changes.drafts = append(changes.drafts, drafts...)
			changes.since = oldest(changes.since, changes.taken.changes[name].at)
		}
	}
	return changes
}

// difference returns the drafts that bring the journal up to date on a node,
// and what it then has.
func (n *nodePods) difference(name string) ([]journal.Draft, map[string]recordedPod) {
	var drafts []journal.Draft
	now := maps.Clone(n.recorded)
	for _, uid := range slices.Sorted(maps.Keys(n.recorded)) {
		was := n.recorded[uid]
		_, exists := n.current[uid]
		if was.nodeUID != n.uid || n.listed && !exists {
			drafts = append(drafts, podGone(name, was))
			delete(now, uid)
		}
	}
	if !n.watched() {
		return drafts, now
	}
	for _, uid := range slices.Sorted(maps.Keys(n.current)) {
		pod := recordedPod{Pod: n.current[uid], nodeUID: n.uid}
		was, ok := now[uid]
		if !ok || !was.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
			drafts = append(drafts, podTerminating(name, pod))
			now[uid] = pod
		}
	}
	return drafts, now
}

// written takes note that the changes are in the journal.
func (p *podFacts) written(changes podChanges) {
	for name, now := range changes.now {
		n := p.node(name)
		n.recorded = now
		if !n.watched() && len(n.recorded) == 0 && len(n.current) == 0 {
			delete(p.nodes, name)
		}
	}
}

func podTerminating(node string, pod recordedPod) journal.Draft {
	grace := journal.Duration(pod.Grace)
	return journal.Draft{
		Type: journal.TypePodTerminating, Actor: ActorPod,
		Subject: journal.PodSubject(pod.Namespace, pod.Name, pod.UID, node),
		Payload: journal.PodTerminating{NodeUID: pod.nodeUID, DeletionTimestamp: pod.DeletionTimestamp, GracePeriod: &grace},
	}
}

func podGone(node string, pod recordedPod) journal.Draft {
	return journal.Draft{
		Type: journal.TypePodGone, Actor: ActorPod,
		Subject: journal.PodSubject(pod.Namespace, pod.Name, pod.UID, node),
		Payload: journal.PodGone{NodeUID: pod.nodeUID},
	}
}
