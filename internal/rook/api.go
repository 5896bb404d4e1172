package rook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
)

// The objects of Rook, as kURL names them.
const (
	Namespace   = "rook-ceph"
	ClusterName = "rook-ceph"
	Operator    = "rook-ceph-operator"
)

// ErrNoToolsPod means that no pod can run ceph commands. Other errors of an [API] wrap the sentinel errors of package
// kube.
var ErrNoToolsPod = errors.New("there is no running pod to run ceph commands in")

// API is what EKCO uses of Rook. Implementations are safe for concurrent use. All reads are live.
type API interface {
	// Detect looks for Rook and its version. It returns an error if it cannot find out: the Kubernetes API is
	// unavailable or, with kube.ErrForbidden, EKCO may not read Rook's objects although Rook seems to be
	// installed.
	Detect(ctx context.Context) (Installation, error)
	// ToolsPod returns a running pod with the ceph program, or ErrNoToolsPod.
	ToolsPod(ctx context.Context, version Version) (Pod, error)
	// Exec runs argv in a pod, without a shell, and waits for it. The error is nil if the program ended,
	// whatever its exit code is. Exec ends with ctx, but the program in the pod may continue. A read-only
	// client returns kube.ErrReadOnly unless ctx is a kube.ReadsOnly.
	Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)
	// Interact is Exec of a program that reads stdin. It passes on the output while the program runs. After ctx
	// has ended, stdout and stderr may still be written to. The caller is responsible for what it writes to
	// stdin.
	Interact(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
	// OSDDeployments returns the Deployments of all OSDs of the cluster, sorted by name; none if Rook is not
	// installed.
	OSDDeployments(ctx context.Context) ([]OSDDeployment, error)
	// ScaleDown scales the Deployment with this name and UID to 0. It returns kube.ErrNotFound if there is no
	// such Deployment, kube.ErrOtherUID if another one has the name.
	ScaleDown(ctx context.Context, name, uid string) error
	// DeleteDeployment deletes the Deployment with this name and UID, and its pods. Errors as for ScaleDown.
	DeleteDeployment(ctx context.Context, name, uid string) error
	// StorageNode returns the CephCluster's entry for the node that is listed under any of the names: Rook
	// lists hostnames, EKCO knows the names of Nodes.
	StorageNode(ctx context.Context, names ...string) (StorageNode, error)
	// RemoveStorageNode removes the node from the list and returns its entry, nil if there was nothing to do:
	// the list is not in use, has no such node, or belongs to another CephCluster than the captured one. The
	// caller checks that EKCO may edit the list at all.
	RemoveStorageNode(ctx context.Context, node StorageNode) (removed json.RawMessage, err error)
	// AddStorageNode undoes RemoveStorageNode: it adds the node's entry to the end of the list. It does nothing
	// if the list is not in use, has such a node, or belongs to another CephCluster than the captured one.
	AddStorageNode(ctx context.Context, node StorageNode) error
	// OSDPods returns the pods of OSDs that have not ended on this Node, sorted by name.
	OSDPods(ctx context.Context, node string) ([]OSDPod, error)
}

// Installation is what is known about Rook in the cluster.
type Installation struct {
	// Present is set if there is a CephCluster rook-ceph/rook-ceph.
	Present bool
	// Gone is set if even the namespace does not exist, so nothing of Ceph can run or come back. It is not set
	// if that is unknown.
	Gone bool
	// Version is the operator's version; unknown with custom images.
	Version Version
	// Why is why Rook is not present or its version is unknown.
	Why string
}

// Pod names a container.
type Pod struct {
	Name, Container string
}

// OSDPod is a pod that runs an OSD.
type OSDPod struct {
	Name string
	// OSD is the id, or UnknownOSD.
	OSD int
}

// UnknownOSD is the id of an OSD if its Deployment does not have it.
const UnknownOSD = -1

// OSDDeployment is the Deployment of one OSD.
type OSDDeployment struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// OSD is the id, or UnknownOSD.
	OSD int `json:"osd"`
	// UUID is the OSD's, empty if the Deployment does not have it.
	UUID string `json:"uuid,omitempty"`
	// Hostname is the machine that it is bound to, empty if none.
	Hostname string `json:"hostname,omitempty"`
	// Replicas is the wanted number: 1, or 0 if it is scaled down.
	Replicas int `json:"replicas"`
}

// StorageNode is what the CephCluster had about a node when it was captured.
type StorageNode struct {
	// ClusterUID is the UID of the CephCluster; empty if there is none.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// UseAllNodes is set if Rook uses every node and ignores the list.
	UseAllNodes bool `json:"use_all_nodes,omitempty"`
	// Name is the node's name in the list; empty if it is not listed.
	Name string `json:"name,omitempty"`
	// Entry is the node's entry.
	Entry json.RawMessage `json:"entry,omitempty"`
}
