package pods

import (
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// facts compares the terminating pods of watched nodes with the journal, node by node. It stores no other pods.
type facts struct {
	differ *observers.Differ[*podsOnNode]
	// everywhere is true if a list of the pods of all nodes was read and is up to date, so that the pods of a newly
	// watched node are already known. The differ guards it.
	everywhere bool
}

// podsOnNode has the terminating pods of one node, by UID.
type podsOnNode struct {
	// uid is the UID of the node, or "" if the node is not watched.
	uid string
	// listed is true after a complete list was read. Before that, a missing pod may exist.
	listed bool
	pods   map[string]kube.Pod
}

func (n *podsOnNode) watched() bool { return n.uid != "" }

type compared = observers.Facts[*podsOnNode]

func newFacts(known []Known) facts {
	return facts{differ: observers.NewDiffer(recordsFor, func(yield func(string, *podsOnNode) bool) {
		for _, node := range known {
			was := &podsOnNode{uid: node.NodeUID, pods: make(map[string]kube.Pod)}
			for _, pod := range node.Terminating {
				was.pods[pod.UID] = kube.Pod{PodRef: pod}
			}
			if len(was.pods) > 0 && !yield(node.Node, was) {
				return
			}
		}
	}).InOrder()}
}

// at returns the entry of a node for a change.
func at(all *compared, name string) *podsOnNode {
	n := all.Now[name]
	if n == nil {
		n = &podsOnNode{pods: make(map[string]kube.Pod)}
		all.Now[name] = n
	}
	return n
}

// watch sets the nodes whose pods are recorded. want has their UIDs by name.
func (f *facts) watch(all *compared, want map[string]string) {
	for name, n := range all.Now {
		if n.watched() && want[name] != n.uid {
			f.unwatch(all, name, n)
		}
	}
	for name := range all.Recorded {
		if _, ok := want[name]; !ok {
			all.Touch(name, time.Time{})
		}
	}
	for name, uid := range want {
		if n := at(all, name); !n.watched() {
			n.uid, n.listed = uid, f.everywhere
			all.Touch(name, time.Time{})
		}
	}
}

func (f *facts) unwatch(all *compared, name string, n *podsOnNode) {
	n.uid, n.listed = "", false
	if !f.everywhere {
		clear(n.pods)
	}
	forgetEmpty(all, name)
	all.Touch(name, time.Time{})
}

// forgetEmpty drops a node that is not watched and has no pods.
func forgetEmpty(all *compared, name string) {
	if n := all.Now[name]; n != nil && !n.watched() && len(n.pods) == 0 {
		delete(all.Now, name)
	}
}

// see stores the present state of a pod. asked is when its deletion was requested.
func see(all *compared, pod kube.Pod, asked time.Time) {
	if pod.DeletionTimestamp.IsZero() {
		return
	}
	n := at(all, pod.Node)
	before, ok := n.pods[pod.UID]
	if ok && before.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
		return
	}
	n.pods[pod.UID] = pod
	all.Touch(pod.Node, asked)
}

// lose records that a pod no longer exists.
func lose(all *compared, name, uid string) {
	n := all.Now[name]
	if n == nil {
		return
	}
	if _, ok := n.pods[uid]; ok {
		delete(n.pods, uid)
		forgetEmpty(all, name)
		all.Touch(name, time.Now())
	}
}

// replace stores a complete list of a node's pods.
func replace(all *compared, name string, pods []kube.Pod) {
	n := at(all, name)
	n.listed = true
	clear(n.pods)
	for _, pod := range pods {
		if !pod.DeletionTimestamp.IsZero() {
			n.pods[pod.UID] = pod
		}
	}
	forgetEmpty(all, name)
	all.Touch(name, time.Time{})
}

// replaceAll stores a complete list of all nodes' pods.
func (f *facts) replaceAll(all *compared, pods map[string][]kube.Pod) {
	f.everywhere = true
	for _, name := range slices.Collect(maps.Keys(all.Now)) {
		if _, ok := pods[name]; !ok {
			replace(all, name, nil)
		}
	}
	for name, on := range pods {
		replace(all, name, on)
	}
}

// onlyWatchedNodes records that from now on only pods of watched nodes are up to date.
func (f *facts) onlyWatchedNodes(all *compared) {
	f.everywhere = false
	maps.DeleteFunc(all.Now, func(_ string, n *podsOnNode) bool { return !n.watched() })
}

// recordsFor implements [observers.RecordFunc]. The pods of a node that is not watched, or was replaced, are recorded
// as gone.
func recordsFor(d observers.Difference[*podsOnNode]) observers.Records[*podsOnNode] {
	now := &podsOnNode{}
	if d.Now != nil {
		now = *d.Now
	}
	var records observers.Records[*podsOnNode]
	toRecord := &podsOnNode{uid: now.uid, pods: make(map[string]kube.Pod)}
	for _, was := range d.Was {
		for _, uid := range slices.Sorted(maps.Keys(was.pods)) {
			_, exists := now.pods[uid]
			if was.uid != now.uid || now.listed && !exists {
				records.Drafts = append(records.Drafts, gone(d.Key, was.uid, was.pods[uid]))
			} else {
				toRecord.pods[uid] = was.pods[uid]
			}
		}
	}
	if now.watched() {
		records.Drafts = append(records.Drafts, now.draftsForNew(d.Key, toRecord)...)
	}
	if len(toRecord.pods) > 0 {
		records.InJournal = []*podsOnNode{toRecord}
	}
	return records
}

// draftsForNew returns drafts for pods that are not recorded yet or have changed.
func (n *podsOnNode) draftsForNew(name string, toRecord *podsOnNode) []journal.Draft {
	var drafts []journal.Draft
	for _, uid := range slices.Sorted(maps.Keys(n.pods)) {
		pod := n.pods[uid]
		was, ok := toRecord.pods[uid]
		if !ok || !was.DeletionTimestamp.Equal(pod.DeletionTimestamp) {
			drafts = append(drafts, terminating(name, n.uid, pod))
			toRecord.pods[uid] = pod
		}
	}
	return drafts
}

func terminating(node, nodeUID string, pod kube.Pod) journal.Draft {
	grace := journal.Duration(pod.Grace)
	return journal.Draft{
		Type: journal.TypePodTerminating, Actor: Actor,
		Subject: journal.PodSubject(pod.Namespace, pod.Name, pod.UID, node),
		Payload: journal.PodTerminating{NodeUID: nodeUID, DeletionTimestamp: pod.DeletionTimestamp, GracePeriod: &grace},
	}
}

func gone(node, nodeUID string, pod kube.Pod) journal.Draft {
	return journal.Draft{
		Type: journal.TypePodGone, Actor: Actor,
		Subject: journal.PodSubject(pod.Namespace, pod.Name, pod.UID, node),
		Payload: journal.PodGone{NodeUID: nodeUID},
	}
}
