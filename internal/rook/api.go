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

// API has the calls that EKCO needs to read and change Rook. Implementations are safe for concurrent use. All reads
// are live.
type API interface {
	// Detect finds out whether Rook is installed, and its version. It returns an error if the Kubernetes API is
	// unavailable. It returns kube.ErrForbidden if Rook seems to be installed but EKCO may not read its objects.
	Detect(ctx context.Context) (Installation, error)
	// ToolsPod returns a running pod with the ceph program, or ErrNoToolsPod.
	ToolsPod(ctx context.Context, version Version) (Pod, error)
	// Exec runs argv in a pod, without a shell, and waits for the end of the program. The error is nil if the program
	// ended, with any exit code. Exec ends with ctx, but the program in the pod may continue. A read-only client
	// returns kube.ErrReadOnly unless ctx is a kube.ReadsOnly.
	Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)
	// Interact is Exec for a program that reads stdin. It copies the output while the program runs. It may still write
	// to stdout and stderr after ctx has ended. EKCO does not check whether stdin has commands that change something.
	Interact(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
	// OSDDeployments returns the Deployments of all OSDs of the cluster, sorted by name. The list is empty if Rook is
	// not installed.
	OSDDeployments(ctx context.Context) ([]OSDDeployment, error)
	// ScaleDown scales the Deployment with this name and UID to 0. It returns kube.ErrNotFound if no Deployment has the
	// name, and kube.ErrOtherUID if another Deployment has the name.
	ScaleDown(ctx context.Context, name, uid string) error
	// DeleteDeployment deletes the Deployment with this name and UID, and its pods. Its errors are like those of
	// ScaleDown.
	DeleteDeployment(ctx context.Context, name, uid string) error
	// StorageNode returns the CephCluster's entry for a node. It needs all names of the node: Rook lists hostnames,
	// which can differ from the names of Nodes.
	StorageNode(ctx context.Context, names ...string) (StorageNode, error)
	// RemoveStorageNode removes the node from the list and returns its entry. It returns nil and does nothing if Rook
	// does not use the list, if the list does not have the node, or if the CephCluster has another UID than node. The
	// caller must check that EKCO may edit the list.
	RemoveStorageNode(ctx context.Context, node StorageNode) (removed json.RawMessage, err error)
	// AddStorageNode undoes RemoveStorageNode: it adds the node's entry to the end of the list. It does nothing if Rook
	// does not use the list, if the list has the node, or if the CephCluster has another UID than node.
	AddStorageNode(ctx context.Context, node StorageNode) error
	// OSDPods returns the OSD pods on this Node that have not ended, sorted by name.
	OSDPods(ctx context.Context, node string) ([]OSDPod, error)
}

// Installation describes Rook in the cluster.
type Installation struct {
	// Present is set if there is a CephCluster rook-ceph/rook-ceph.
	Present bool
	// Gone is set if EKCO knows that the namespace does not exist. Then no part of Ceph can run or start again.
	Gone bool
	// Version is the operator's version. It is unknown for custom images.
	Version Version
	// Why is the reason why Rook is not present or its version is unknown.
	Why string
}

// Pod names a container.
type Pod struct {
	Name, Container string
}

// OSDPod is a pod that runs an OSD.
type OSDPod struct {
	Name string
	// OSD is the id of the OSD, or UnknownOSD.
	OSD int
}

// UnknownOSD stands for the id of an OSD if the labels of its Deployment have no id.
const UnknownOSD = -1

// OSDDeployment is the Deployment of one OSD.
type OSDDeployment struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// OSD is the id of the OSD, or UnknownOSD.
	OSD int `json:"osd"`
	// UUID is the UUID of the OSD, or empty if the Deployment does not have it.
	UUID string `json:"uuid,omitempty"`
	// Hostname is the machine that the Deployment's node selector selects, or empty.
	Hostname string `json:"hostname,omitempty"`
	// Replicas is the wanted number of replicas: 1, or 0 if the Deployment is scaled down.
	Replicas int `json:"replicas"`
	// Finalizers are the finalizers that delay the deletion of the Deployment at present. They are not recorded.
	Finalizers []string `json:"-"`
}

// StorageNode is the entry of a node in the CephCluster at the time when EKCO read it.
type StorageNode struct {
	// ClusterUID is the UID of the CephCluster, or empty if there is no CephCluster.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// UseAllNodes is set if Rook uses every node and ignores the list.
	UseAllNodes bool `json:"use_all_nodes,omitempty"`
	// Name is the node's name in the list, or empty if the node is not listed.
	Name string `json:"name,omitempty"`
	// Entry is the node's entry as JSON.
	Entry json.RawMessage `json:"entry,omitempty"`
}
