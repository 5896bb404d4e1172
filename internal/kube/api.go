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

// API is what EKCO uses of the Kubernetes API, except watches. All reads are live: they go to the API server,
// never to a cache.
type API interface {
	// Node reads a Node.
	Node(ctx context.Context, name string) (Node, error)
	// ListNodes reads all Nodes, sorted by name.
	ListNodes(ctx context.Context) ([]Node, error)
	// DeleteNode deletes the Node with this name and UID. It returns ErrNotFound if there is no such Node,
	// ErrOtherUID if another Node has the name.
	DeleteNode(ctx context.Context, name, uid string) error
	// Pod reads a Pod, with its status.
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	// ForceDeletePod deletes the Pod with this name and UID with grace period 0. Errors as for DeleteNode.
	ForceDeletePod(ctx context.Context, namespace, name, uid string) error
	// ClusterUID returns the UID of namespace kube-system.
	ClusterUID(ctx context.Context) (string, error)
	// ReadMirror returns the mirror's content and its resource version. It returns ErrNotFound if there is no
	// mirror.
	ReadMirror(ctx context.Context) (content []byte, version string, err error)
	// WriteMirror creates the mirror (version "") or replaces this version, and returns the new one. It returns
	// ErrConflict if the mirror has another version.
	WriteMirror(ctx context.Context, content []byte, version string) (string, error)
	// MirrorParts returns the content of every part of a mirror, by name, including parts that no mirror names.
	MirrorParts(ctx context.Context) (map[string][]byte, error)
	// WriteMirrorPart creates a part, or replaces the one with this name.
	WriteMirrorPart(ctx context.Context, name string, content []byte) error
	// DeleteMirrorPart deletes a part. It returns ErrNotFound if there is no such part.
	DeleteMirrorPart(ctx context.Context, name string) error
	// ServerTime returns the API server's time, to a few seconds, and whether it is known. It sends nothing.
	ServerTime() (now time.Time, known bool)
	// RecordEvent writes a Kubernetes Event about the subject. An error means that it was not written.
	RecordEvent(ctx context.Context, about journal.Subject, note Note) error
}

// Node is a Node as EKCO sees it.
type Node struct {
	Name, UID string
	Facts     journal.NodeFacts
	// Deleting is set if the Node is being deleted, and Finalizers delay that. Nodes from a watch have neither.
	Deleting   bool
	Finalizers []string
}

// Pod is a Pod as EKCO sees it.
type Pod struct {
	journal.PodRef
	// Node is the name of the node it is bound to.
	Node string
	// Grace is the pod's termination grace period from its deletion on; 0 while it is not being deleted.
	Grace time.Duration
	// Controller recreates the pod, if it has one. Only pods from [PodWithStatusOf] have Controller and Status.
	Controller Controller
	Status     PodStatus
}

// Controller is the controller of pods, for example a "DaemonSet" with this name.
type Controller struct{ Kind, Name string }

// PodStatus is what a Pod's kubelet reports, with times by the node's clock.
type PodStatus struct {
	// Phase is "Running", for example.
	Phase string
	// NotReadySince is when the pod's containers stopped being all ready, although it is not being deleted;
	// zero if they are ready, or if that is unknown.
	NotReadySince time.Time
	Containers    []Container
}

// Container is a container of a Pod. One that does not run has no RunningSince.
type Container struct {
	Name         string
	Ready        bool
	RunningSince time.Time
}

// Container returns the container of that name, and whether there is one.
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
	// Reason is a short CamelCase word, Message a sentence.
	Reason, Message string
	Warning         bool
	// APIVersion is the object's; empty if it is not known.
	APIVersion string
}
