package kube

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Sentinel errors of an [API]. Every error of a call wraps at most one.
var (
	// ErrNotFound: the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrForbidden: EKCO's service account lacks the permission.
	ErrForbidden = errors.New("forbidden")
	// ErrOtherUID: another object has this name.
	ErrOtherUID = errors.New("another object has this name")
	// ErrConflict: the object changed since it was read.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: the API server did not answer, or cannot answer now.
	ErrUnavailable = errors.New("the Kubernetes API is unavailable")
)

// API has the calls of the Kubernetes API that EKCO uses, except watches. All reads are live: they go to the API
// server, never to a cache.
type API interface {
	// Node reads a Node.
	Node(ctx context.Context, name string) (Node, error)
	// ListNodes reads all Nodes, sorted by name.
	ListNodes(ctx context.Context) ([]Node, error)
	// DeleteNode deletes the Node with this name and UID. It returns ErrNotFound if no Node has the name, and
	// ErrOtherUID if another Node has the name.
	DeleteNode(ctx context.Context, name, uid string) error
	// Pod reads a Pod, with its status.
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	// ForceDeletePod deletes the Pod with this name and UID with grace period 0. Its errors are like those of
	// DeleteNode.
	ForceDeletePod(ctx context.Context, namespace, name, uid string) error
	// ClusterUID returns the UID of namespace kube-system.
	ClusterUID(ctx context.Context) (string, error)
	// ReadMirror returns the mirror's content and its resource version. It returns ErrNotFound if there is no
	// mirror.
	ReadMirror(ctx context.Context) (content []byte, version string, err error)
	// WriteMirror creates the mirror (version "") or replaces the given version, and returns the new version. It
	// returns ErrConflict if the mirror has another version.
	WriteMirror(ctx context.Context, content []byte, version string) (string, error)
	// MirrorParts returns the content of every part of a mirror, by name, including parts that no mirror names.
	MirrorParts(ctx context.Context) (map[string][]byte, error)
	// WriteMirrorPart creates or replaces the part with this name.
	WriteMirrorPart(ctx context.Context, name string, content []byte) error
	// DeleteMirrorPart deletes a part. It returns ErrNotFound if there is no such part.
	DeleteMirrorPart(ctx context.Context, name string) error
	// ServerTime returns the API server's time, exact to a few seconds, and reports whether the time is known. It
	// sends no request.
	ServerTime() (now time.Time, known bool)
	// RecordEvent writes a Kubernetes Event about the subject. An error means that the Event was not written.
	RecordEvent(ctx context.Context, about journal.Subject, note Note) error
}

// Node has the fields of a Kubernetes Node that EKCO uses.
type Node struct {
	Name, UID string
	Facts     journal.NodeFacts
	// Deleting is set if the Node is being deleted. Finalizers are the finalizers that delay the deletion. Nodes
	// from a watch have neither.
	Deleting   bool
	Finalizers []string
}

// Pod has the fields of a Kubernetes Pod that EKCO uses.
type Pod struct {
	journal.PodRef
	// Node is the name of the pod's node.
	Node string
	// Finalizers are the finalizers that delay the deletion of a pod. Only pods from [PodWithStatusOf] have them.
	Finalizers []string
	// Grace is the termination grace period of a pod that is being deleted, otherwise 0.
	Grace time.Duration
	// Controller is the controller that recreates the pod, if any. Only pods from [PodWithStatusOf] have Controller
	// and Status.
	Controller Controller
	Status     PodStatus
}

// Controller is the controller of pods, for example a "DaemonSet" with this name.
type Controller struct{ Kind, Name string }

// PodStatus is what a Pod's kubelet reports, with times by the node's clock.
type PodStatus struct {
	// Phase is "Running", for example.
	Phase string
	// NotReadySince is since when not all containers of the pod are ready. It is zero if all are ready, if the pod is
	// being deleted, or if the time is unknown.
	NotReadySince time.Time
	Containers    []Container
}

// Container is a container of a Pod. RunningSince is zero if the container does not run.
type Container struct {
	Name         string
	Ready        bool
	RunningSince time.Time
}

// Container returns the container with that name, and reports whether it exists.
func (s PodStatus) Container(name string) (Container, bool) {
	for _, c := range s.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// Note is the content of a Kubernetes Event.
type Note struct {
	// Reason is a short CamelCase word. Message is a sentence.
	Reason, Message string
	Warning         bool
	// APIVersion is the API version of the object, or empty if it is not known.
	APIVersion string
}
