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

// ErrNoToolsPod says that there is no pod to run ceph in. Other errors of an
// [API] wrap the sentinel errors of package kube.
var ErrNoToolsPod = errors.New("there is no running pod to run ceph commands in")

// API is what EKCO asks of Rook. Implementations are safe for concurrent use.
// All reads are live.
type API interface {
	// Detect looks for Rook and its version. An error says that it could not be
	// told: the Kubernetes API is unavailable or, with kube.ErrForbidden, EKCO may
	// not see Rook although there are signs of it.
	Detect(ctx context.Context) (Installation, error)
	// ToolsPod returns a running pod with the ceph program. It returns
	// ErrNoToolsPod when there is none.
	ToolsPod(ctx context.Context, version Version) (Pod, error)
	// Exec runs argv in a pod, without a shell, and waits for it. The error is
	// nil when the program ran to its end, whatever its exit code. When ctx ends,
	// Exec does; the program in the pod may go on. Where nothing may change, it
	// returns kube.ErrReadOnly unless ctx is a kube.Question.
	Exec(ctx context.Context, pod Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)
	// Converse is Exec of a program that reads stdin, and whose output is passed on as
	// it comes. When ctx ends, stdout and stderr may still be written to. Who writes
	// to the other end of stdin answers for what the program does.
	Converse(ctx context.Context, pod Pod, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
	// OSDDeployments returns the Deployments of all OSDs of the cluster, sorted by
	// name. None when Rook is not there.
	OSDDeployments(ctx context.Context) ([]OSDDeployment, error)
	// ScaleDown sets the replicas of the Deployment of that name and UID to 0. It
	// returns kube.ErrNotFound when there is none of the name, kube.ErrOtherUID
	// when it is another one.
	ScaleDown(ctx context.Context, name, uid string) error
	// DeleteDeployment deletes the Deployment of that name and UID; its pods
	// follow. Errors as ScaleDown.
	DeleteDeployment(ctx context.Context, name, uid string) error
	// StorageNode returns what the CephCluster says about the node that is listed
	// under any of the names: Rook lists hostnames, EKCO the names of Nodes.
	StorageNode(ctx context.Context, names ...string) (StorageNode, error)
	// RemoveStorageNode takes the node off the list and returns its entry as it
	// was, nil when there was nothing to do. That is so when the list is not in
	// use, has no such node, or belongs to another CephCluster than the one that
	// was captured. Whether EKCO may edit the list at all is for the caller to
	// know.
	RemoveStorageNode(ctx context.Context, node StorageNode) (removed json.RawMessage, err error)
	// AddStorageNode takes back what RemoveStorageNode did: it puts the node's entry
	// at the end of the list. There is nothing to do when the list is not in use,
	// has such a node, or belongs to another CephCluster than the one that was
	// captured.
	AddStorageNode(ctx context.Context, node StorageNode) error
	// OSDPods returns the pods of OSDs that have not ended on the Node of that name,
	// sorted by name.
	OSDPods(ctx context.Context, node string) ([]OSDPod, error)
}

// Installation is what is known about Rook in the cluster.
type Installation struct {
	// Present is set when there is a CephCluster rook-ceph/rook-ceph.
	Present bool
	// Gone is set when there is not even the namespace, so that nothing of Ceph can
	// run or come back by itself. Not set when that cannot be told.
	Gone bool
	// Version is that of the operator. Not known with custom images.
	Version Version
	// Why says, for people, why Rook is not present or its version is not known.
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

// UnknownOSD is the id of an OSD whose Deployment does not say it.
const UnknownOSD = -1

// OSDDeployment is the Deployment of one OSD.
type OSDDeployment struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// OSD is the id, or UnknownOSD.
	OSD int `json:"osd"`
	// UUID is the OSD's, empty where the Deployment does not say it.
	UUID string `json:"uuid,omitempty"`
	// Hostname is that of the machine it is bound to, empty where it is bound to
	// none.
	Hostname string `json:"hostname,omitempty"`
	// Replicas is how many are wanted: 1, or 0 when it is scaled down.
	Replicas int `json:"replicas"`
}

// StorageNode is what the CephCluster said about a node when it was captured.
type StorageNode struct {
	// ClusterUID is the UID of the CephCluster; empty when there is none.
	ClusterUID string `json:"cluster_uid,omitempty"`
	// UseAllNodes is set when Rook takes every node and ignores the list.
	UseAllNodes bool `json:"use_all_nodes,omitempty"`
	// Name is the name the node is listed under; empty when it is not.
	Name string `json:"name,omitempty"`
	// Entry is the node's entry, as it is written.
	Entry json.RawMessage `json:"entry,omitempty"`
}
