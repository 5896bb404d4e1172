package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// The verbs that can be forbidden.
const (
	GetNodes         = "get nodes"
	ListNodes        = "list nodes"
	DeleteNodes      = "delete nodes"
	GetPods          = "get pods"
	DeletePods       = "delete pods"
	GetNamespaces    = "get namespaces"
	GetConfigMaps    = "get configmaps"
	UpdateConfigMaps = "update configmaps"
	ListConfigMaps   = "list configmaps"
	DeleteConfigMaps = "delete configmaps"
	CreateEvents     = "create events"
)

// AddNode adds a ready node and returns it.
func (c *Cluster) AddNode(name string, role journal.NodeRole) kube.Node {
	var node kube.Node
	c.change(func() {
		uid := c.newUID(name)
		node = kube.Node{Name: name, UID: uid, Facts: journal.NodeFacts{
			Role: role, Hostname: name, InternalIP: fmt.Sprintf("10.0.%d.%d", c.uids/250, c.uids%250+1),
			CreatedAt: time.Now().UTC(),
		}}
		c.nodes[name] = &node
		node = clone(node)
	})
	return node
}

// SetClusterUID makes it another cluster, as after a new installation.
func (c *Cluster) SetClusterUID(uid string) {
	c.change(func() { c.uid = uid })
}

// SetInternalIP gives a node an address.
func (c *Cluster) SetInternalIP(name, ip string) {
	c.change(func() { c.nodes[name].Facts.InternalIP = ip })
}

// SetHostname gives a node a hostname that is not its name.
func (c *Cluster) SetHostname(name, hostname string) {
	c.change(func() { c.nodes[name].Facts.Hostname = hostname })
}

// SetLabel sets a label that is part of a node's facts.
func (c *Cluster) SetLabel(name, label, value string) {
	c.change(func() {
		node := c.nodes[name]
		node.Facts.Labels = maps.Clone(node.Facts.Labels)
		if node.Facts.Labels == nil {
			node.Facts.Labels = map[string]string{}
		}
		node.Facts.Labels[label] = value
	})
}

// SetClock sets how far the API server's clock is ahead of the test's.
func (c *Cluster) SetClock(ahead time.Duration) {
	c.change(func() { c.clockAhead = ahead })
}

func (c *Cluster) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.clockAhead).UTC()
}

// LoseNode taints a node as the node controller does when its kubelet does not answer. Its pods stay; see
// [Cluster.TerminatePods].
func (c *Cluster) LoseNode(name string) {
	c.change(func() {
		now := time.Now().Add(c.clockAhead).UTC()
		c.nodes[name].Facts.Taints = []journal.Taint{
			{Key: journal.TaintUnreachable, Effect: "NoExecute", TimeAdded: now},
			{Key: journal.TaintUnreachable, Effect: "NoSchedule", TimeAdded: now},
		}
	})
}

// UnreadyNode taints a node as the node controller does when its kubelet answers
// and reports that the node is not ready.
func (c *Cluster) UnreadyNode(name string) {
	c.change(func() {
		now := time.Now().UTC()
		c.nodes[name].Facts.Taints = []journal.Taint{
			{Key: journal.TaintNotReady, Effect: "NoExecute", TimeAdded: now},
			{Key: journal.TaintNotReady, Effect: "NoSchedule", TimeAdded: now},
		}
	})
}

// Exclude sets or removes the label that excludes a node.
func (c *Cluster) Exclude(name string, excluded bool) {
	c.change(func() { c.nodes[name].Facts.Excluded = excluded })
}

// ReturnNode removes the taints.
func (c *Cluster) ReturnNode(name string) {
	c.change(func() { c.nodes[name].Facts.Taints = nil })
}

// ReplaceNode replaces a node by a ready one with another UID, and returns it. Pods stay.
func (c *Cluster) ReplaceNode(name string) kube.Node {
	c.mu.Lock()
	role := c.nodes[name].Facts.Role
	c.mu.Unlock()
	return c.AddNode(name, role)
}

// RemoveNode deletes a Node like an administrator, long enough ago that Kubernetes has removed the pod of its
// API server.
func (c *Cluster) RemoveNode(name string) {
	c.change(func() {
		delete(c.nodes, name)
		c.kubeadm.apiServers = slices.DeleteFunc(c.kubeadm.apiServers, func(pod kube.APIServerPod) bool { return pod.Node == name })
	})
}

// AddPod adds a running pod and returns it.
func (c *Cluster) AddPod(namespace, name, node string) kube.Pod {
	var added kube.Pod
	c.change(func() {
		added = kube.Pod{PodRef: journal.PodRef{Namespace: namespace, Name: name, UID: c.newUID(name)}, Node: node}
		c.pods[namespace+"/"+name] = &pod{Pod: added}
	})
	return added
}

// SetPodStatus sets the status that the kubelet reports for a pod.
func (c *Cluster) SetPodStatus(namespace, name string, status kube.PodStatus) {
	c.change(func() { c.pods[namespace+"/"+name].Status = status })
}

// TerminatePods terminates every pod of a node, with the given deletion timestamp, and returns those pods
// sorted by name.
func (c *Cluster) TerminatePods(node string, deletion time.Time) []journal.PodRef {
	c.change(func() {
		for _, pod := range c.pods {
			if pod.Node == node && pod.DeletionTimestamp.IsZero() {
				pod.DeletionTimestamp = deletion.UTC()
				pod.Grace = max(0, deletion.Sub(time.Now().Add(c.clockAhead)))
			}
		}
	})
	_, pods, _ := c.Snapshot()
	var terminating []journal.PodRef
	for _, pod := range pods {
		if pod.Node == node && !pod.DeletionTimestamp.IsZero() {
			terminating = append(terminating, pod.PodRef)
		}
	}
	return terminating
}

// ReplacePod replaces a pod by one with another UID, as a StatefulSet does.
func (c *Cluster) ReplacePod(namespace, name, node string) kube.Pod {
	return c.AddPod(namespace, name, node)
}

// Stick sets or removes a finalizer of a pod: with it, a deletion is accepted but has no effect.
func (c *Cluster) Stick(namespace, name string, stuck bool) {
	c.change(func() {
		pod := c.pods[namespace+"/"+name]
		if pod.stuck, pod.Finalizers = stuck, nil; stuck {
			pod.Finalizers = []string{"example.com/stuck"}
		}
	})
}

// Finalize sets the finalizers of a node. Without any, a node that is being deleted is gone.
func (c *Cluster) Finalize(node string, finalizers ...string) {
	c.change(func() {
		n := c.nodes[node]
		if n.Finalizers = finalizers; n.Deleting && len(finalizers) == 0 {
			delete(c.nodes, node)
		}
	})
}

// SetMirror replaces the mirror like another client; nil removes it.
func (c *Cluster) SetMirror(content []byte) {
	c.change(func() { c.mirror = content; c.version++ })
}

// maxConfigMap is how many bytes a ConfigMap holds.
const maxConfigMap = 1 << 20

// Parts returns the parts of mirrors, by name.
func (c *Cluster) Parts() map[string][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.parts)
}

// SetPart replaces a part of a mirror like another client; nil removes it.
func (c *Cluster) SetPart(name string, content []byte) {
	c.change(func() {
		if c.parts[name] = content; content == nil {
			delete(c.parts, name)
		}
	})
}
