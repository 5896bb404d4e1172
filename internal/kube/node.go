package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

// The labels of a Node that its facts contain.
const (
	LabelMaster       = "node-role.kubernetes.io/master"
	LabelControlPlane = "node-role.kubernetes.io/control-plane"
	// LabelExclude excludes a node from EKCO's automatic actions, unless its value is "false".
	LabelExclude = "ekco.kurl.sh/exclude"
	// LabelHostname is the label that node selectors and volumes use to select a machine.
	LabelHostname = "kubernetes.io/hostname"
)

// Node implements [API].
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	var node corev1.Node
	if err := c.get(ctx, "nodes", "", name, &node); err != nil {
		return Node{}, err
	}
	return c.node(&node), nil
}

// node converts a Node, with the labels of [Options.NodeLabels].
func (c *Client) node(node *corev1.Node) Node { return NodeLabelled(node, c.nodeLabels) }

// nodesPerPage limits the memory of one page of a list. A Node can have 20 KiB.
const nodesPerPage = 500

// ListNodes implements [API].
func (c *Client) ListNodes(ctx context.Context) ([]Node, error) {
	var nodes []Node
	options := metav1.ListOptions{Limit: nodesPerPage}
	for {
		page, err := c.Nodes().ListWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		list, ok := page.(*corev1.NodeList)
		if !ok {
			return nil, fmt.Errorf("list nodes: the API answered with a %T", page)
		}
		for i := range list.Items {
			nodes = append(nodes, c.node(&list.Items[i]))
		}
		if options.Continue = list.Continue; options.Continue == "" {
			slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
			return nodes, nil
		}
	}
}

// NodeLabelled is [NodeOf], but also copies the given labels to the facts.
func NodeLabelled(node *corev1.Node, labels []string) Node {
	known := NodeOf(node)
	known.Facts.Labels = keep(node.Labels, labels...)
	return known
}

// NodeOf converts a Node. The facts have no labels.
func NodeOf(node *corev1.Node) Node {
	return Node{
		Name:     node.Name,
		UID:      string(node.UID),
		Deleting: node.DeletionTimestamp != nil, Finalizers: node.Finalizers,
		Facts: journal.NodeFacts{
			Role:       roleOf(node),
			Taints:     judgedTaints(node),
			Excluded:   excluded(node),
			InternalIP: address(node, corev1.NodeInternalIP),
			Hostname:   cmp.Or(node.Labels[LabelHostname], address(node, corev1.NodeHostName)),
			CreatedAt:  utc(&node.CreationTimestamp),
		},
	}
}

func roleOf(node *corev1.Node) journal.NodeRole {
	for _, label := range []string{LabelMaster, LabelControlPlane} {
		if _, ok := node.Labels[label]; ok {
			return journal.RolePrimary
		}
	}
	return journal.RoleWorker
}

// CanRunPods reports whether a pod can run on a node with these facts, or could if the node were not cordoned.
func CanRunPods(facts journal.NodeFacts) bool {
	return !slices.ContainsFunc(facts.Taints, func(t journal.Taint) bool { return t.Key != journal.TaintUnschedulable })
}

func excluded(node *corev1.Node) bool {
	value, ok := node.Labels[LabelExclude]
	return ok && value != "false"
}

func judgedTaints(node *corev1.Node) []journal.Taint {
	var taints []journal.Taint
	for _, taint := range node.Spec.Taints {
		if journal.IsRecordedTaint(taint.Key) {
			taints = append(taints, journal.Taint{
				Key: taint.Key, Effect: string(taint.Effect), TimeAdded: utc(taint.TimeAdded),
			})
		}
	}
	slices.SortFunc(taints, func(a, b journal.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	return taints
}

// address returns the first address of a node with the type, or "".
func address(node *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

func utc(t *metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// slimNode removes the fields that NodeLabelled and a watch do not need, so that a list of thousands of nodes takes
// little memory. It also removes the hostname label if it is equal to the node's hostname address.
func slimNode(node *corev1.Node, labels ...string) {
	labels = append([]string{LabelMaster, LabelControlPlane, LabelExclude}, labels...)
	if node.Labels[LabelHostname] != address(node, corev1.NodeHostName) {
		labels = append(labels, LabelHostname)
	}
	node.ObjectMeta = metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
		CreationTimestamp: node.CreationTimestamp,
		Labels:            keep(node.Labels, labels...),
		Annotations:       keep(node.Annotations, metav1.InitialEventsAnnotationKey),
	}
	node.Spec = corev1.NodeSpec{Taints: node.Spec.Taints}
	node.Status = corev1.NodeStatus{Addresses: node.Status.Addresses}
}

func keep(all map[string]string, keys ...string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = make(map[string]string, 1)
			}
			kept[key] = value
		}
	}
	return kept
}
