package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/internal/kube"
)

// cephCluster is the part of a CephCluster that EKCO reads.
type cephCluster struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Storage struct {
			UseAllNodes bool              `json:"useAllNodes"`
			Nodes       []json.RawMessage `json:"nodes"`
		} `json:"storage"`
	} `json:"spec"`
}

func (c *Client) cephCluster(ctx context.Context) (cephCluster, error) {
	var cluster cephCluster
	err := c.get(ctx, cephClusters, ClusterName, "", &cluster)
	return cluster, err
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
	node := StorageNode{ClusterUID: string(cluster.UID), UseAllNodes: cluster.Spec.Storage.UseAllNodes}
	if i, name := cluster.findNode(names...); i >= 0 {
		node.Name, node.Entry = name, cluster.Spec.Storage.Nodes[i]
	}
	return node, nil
}

// errMoved means that the list changed between the read and the patch.
var errMoved = errors.New("the list of storage nodes changes too often")

// RemoveStorageNode implements [API].
func (c *Client) RemoveStorageNode(ctx context.Context, node StorageNode) (json.RawMessage, error) {
	if node.Name == "" {
		return nil, nil
	}
	var removed json.RawMessage
	err := kube.Retry(errMoved, func() (err error) {
		removed, err = c.removeStorageNode(ctx, node)
		return err
	})
	if !errors.Is(err, errMoved) {
		return removed, err
	}
	return nil, fmt.Errorf("take node %s off CephCluster %s/%s: %w: %w; EKCO tries again",
		node.Name, Namespace, ClusterName, kube.ErrConflict, errMoved)
}

func (c *Client) removeStorageNode(ctx context.Context, node StorageNode) (json.RawMessage, error) {
	cluster, err := c.cephCluster(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case node.ClusterUID != string(cluster.UID) || cluster.Spec.Storage.UseAllNodes:
		return nil, nil
	}
	i, _ := cluster.findNode(node.Name)
	if i < 0 {
		return nil, nil
	}
	entry := cluster.Spec.Storage.Nodes[i]
	if err := c.patchOut(ctx, string(cluster.UID), i, entry); err != nil {
		return nil, err
	}
	return entry, nil
}

// AddStorageNode implements [API].
func (c *Client) AddStorageNode(ctx context.Context, node StorageNode) error {
	if node.Name == "" || len(node.Entry) == 0 {
		return nil
	}
	err := kube.Retry(errMoved, func() error { return c.addStorageNode(ctx, node) })
	if !errors.Is(err, errMoved) {
		return err
	}
	return fmt.Errorf("put node %s back on CephCluster %s/%s: %w: %w; EKCO tries again",
		node.Name, Namespace, ClusterName, kube.ErrConflict, errMoved)
}

func (c *Client) addStorageNode(ctx context.Context, node StorageNode) error {
	cluster, err := c.cephCluster(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil
	case err != nil:
		return err
	case node.ClusterUID != string(cluster.UID) || cluster.Spec.Storage.UseAllNodes:
		return nil
	}
	if i, _ := cluster.findNode(node.Name); i >= 0 {
		return nil
	}
	add := operation{Op: "add", Path: "/spec/storage/nodes/-", Value: node.Entry}
	if cluster.Spec.Storage.Nodes == nil {
		add = operation{Op: "add", Path: "/spec/storage/nodes", Value: []json.RawMessage{node.Entry}}
	}
	return c.patch(ctx, operation{Op: "test", Path: "/metadata/resourceVersion", Value: cluster.ResourceVersion}, add)
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchOut removes the entry at an index. It returns errMoved if the entry is not there any more, or if Rook does not use
// the list any more.
func (c *Client) patchOut(ctx context.Context, clusterUID string, index int, entry json.RawMessage) error {
	path := "/spec/storage/nodes/" + strconv.Itoa(index)
	return c.patch(ctx,
		operation{Op: "test", Path: "/metadata/uid", Value: clusterUID},
		operation{Op: "test", Path: path, Value: entry},
		operation{Op: "remove", Path: path},
	)
}

// patch changes the CephCluster. It returns errMoved if a test in the patch fails.
func (c *Client) patch(ctx context.Context, operations ...operation) error {
	patch, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("patch CephCluster %s/%s: %w", Namespace, ClusterName, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err = c.rest.Patch(types.JSONPatchType).AbsPath(cephClusters.path(ClusterName)...).Body(patch).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusUnprocessableEntity {
		// The API server returns this error if a test failed.
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return call{"patch", "cephclusters", ClusterName}.fail(err)
}
