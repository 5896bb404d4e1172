package rook

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// cephCluster is the part of a CephCluster that EKCO reads.
type cephCluster struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Storage storageSection `json:"storage"`
	} `json:"spec"`
}

func (c *Client) cephCluster(ctx context.Context) (cephCluster, error) {
	return kube.Get[cephCluster](ctx, c.objects, ResourceRef(journal.RookCluster))
}

// findNode returns the index and the name of the first listed node with one of the names. The index is -1 if there is no
// such node.
func (c cephCluster) findNode(names ...string) (int, string) {
	for i, entry := range c.Spec.Storage.Nodes {
		var node struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(entry, &node) == nil && node.Name != "" && slices.Contains(names, node.Name) {
			return i, node.Name
		}
	}
	return -1, ""
}

// StorageNode implements [API].
func (c *Client) StorageNode(ctx context.Context, names ...string) (StorageNode, error) {
	cluster, err := c.cephCluster(ctx)
	switch {
	case isAbsent(err):
		return StorageNode{}, nil
	case err != nil:
		return StorageNode{}, err
	}
	node := StorageNode{ClusterUID: string(cluster.UID), UseAllNodes: cluster.Spec.Storage.allNodes()}
	if i, name := cluster.findNode(names...); i >= 0 {
		node.Name, node.Entry = name, cluster.Spec.Storage.Nodes[i]
	}
	return node, nil
}

// RemoveStorageNode implements [API].
func (c *Client) RemoveStorageNode(ctx context.Context, node StorageNode) (removed json.RawMessage, err error) {
	err = kube.Retry(kube.ErrConflict, func() error {
		removed, err = c.removeStorageNode(ctx, node)
		return err
	})
	return removed, err
}

// removeStorageNode removes the entry only if the entry has not moved and Rook still uses the list.
func (c *Client) removeStorageNode(ctx context.Context, node StorageNode) (json.RawMessage, error) {
	cluster, inUse, err := c.listOf(ctx, node)
	i, _ := cluster.findNode(node.Name)
	if err != nil || !inUse || i < 0 {
		return nil, err
	}
	entry, path := cluster.Spec.Storage.Nodes[i], "/spec/storage/nodes/"+strconv.Itoa(i)
	_, err = c.objects.PatchObject(ctx, ResourceRef(journal.RookCluster), []kube.PatchOp{
		{Op: "test", Path: "/metadata/uid", Value: cluster.UID},
		{Op: "test", Path: path, Value: entry},
		{Op: "remove", Path: path},
	})
	if err != nil {
		return nil, err
	}
	return entry, nil
}

// AddStorageNode implements [API].
func (c *Client) AddStorageNode(ctx context.Context, node StorageNode) error {
	if len(node.Entry) == 0 {
		return nil
	}
	return kube.Retry(kube.ErrConflict, func() error { return c.addStorageNode(ctx, node) })
}

func (c *Client) addStorageNode(ctx context.Context, node StorageNode) error {
	cluster, inUse, err := c.listOf(ctx, node)
	if i, _ := cluster.findNode(node.Name); err != nil || !inUse || i >= 0 {
		return err
	}
	add := kube.PatchOp{Op: "add", Path: "/spec/storage/nodes/-", Value: node.Entry}
	if cluster.Spec.Storage.Nodes == nil {
		add = kube.PatchOp{Op: "add", Path: "/spec/storage/nodes", Value: []json.RawMessage{node.Entry}}
	}
	_, err = c.objects.PatchObject(ctx, ResourceRef(journal.RookCluster), []kube.PatchOp{
		{Op: "test", Path: "/metadata/resourceVersion", Value: cluster.ResourceVersion}, add,
	})
	return err
}

// listOf returns the CephCluster. inUse is true if that is the node's cluster and Rook uses its list.
func (c *Client) listOf(ctx context.Context, node StorageNode) (cluster cephCluster, inUse bool, err error) {
	cluster, err = c.cephCluster(ctx)
	if node.Name == "" || isAbsent(err) {
		return cluster, false, nil
	}
	return cluster, node.ClusterUID == string(cluster.UID) && !cluster.Spec.Storage.allNodes(), err
}
