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
	// ErrForbidden: EKCO's service account may not do that.
	ErrForbidden = errors.New("forbidden")
	// ErrOtherUID: an object of the name exists, and it is another one.
	ErrOtherUID = errors.New("another object has this name")
	// ErrConflict: the object changed since it was read.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: the API server did not answer, or cannot now.
	ErrUnavailable = errors.New("the Kubernetes API is unavailable")
)

// API is what EKCO asks of the Kubernetes API outside of watches. All reads
// are live: they go to the API server, never to a cache.
type API interface {
	// Node reads a Node.
	Node(ctx context.Context, name string) (Node, error)
	// ListNodes reads all Nodes, sorted by name.
	ListNodes(ctx context.Context) ([]Node, error)
	// DeleteNode deletes the Node of that name and UID. It returns ErrNotFound
	// when there is none of the name, ErrOtherUID when it is another one.
	DeleteNode(ctx context.Context, name, uid string) error
	// Pod reads a Pod, with its status.
	Pod(ctx context.Context, namespace, name string) (Pod, error)
	// ForceDeletePod deletes the Pod of that name and UID with grace period 0.
	// Errors as DeleteNode.
	ForceDeletePod(ctx context.Context, namespace, name, uid string) error
	// ClusterUID returns the UID of namespace kube-system.
	ClusterUID(ctx context.Context) (string, error)
	// ReadMirror returns the mirror's content and its resource version. It
	// returns ErrNotFound when there is none.
	ReadMirror(ctx context.Context) (content []byte, version string, err error)
	// WriteMirror creates the mirror (version "") or replaces the one of that
	// version, and returns the new version. It returns ErrConflict when the
	// mirror is not of that version.
	WriteMirror(ctx context.Context, content []byte, version string) (string, error)
	// MirrorParts returns the content of every part of a mirror, by name: also of those
	// that no mirror names.
	MirrorParts(ctx context.Context) (map[string][]byte, error)
	// WriteMirrorPart creates a part, or replaces the one of that name.
	WriteMirrorPart(ctx context.Context, name string, content []byte) error
	// DeleteMirrorPart deletes a part. It returns ErrNotFound when there is none of the name.
	DeleteMirrorPart(ctx context.Context, name string) error
	// ServerTime returns what the API server's clock shows now, to a few seconds,
	// and whether that is known. It asks nothing.
	ServerTime() (now time.Time, known bool)
	// RecordEvent writes a Kubernetes Event about the subject. Best effort: an
	// error says that it was not written.
	RecordEvent(ctx context.Context, about journal.Subject, note Note) error
}

// Node is a Node as EKCO sees it.
type Node struct {
	Name, UID string
	Facts     journal.NodeFacts
	// Deleting is set when its deletion was asked for, and Finalizers keep it. A watch tells
	// neither.
	Deleting   bool
	Finalizers []string
}

// Pod is a Pod as EKCO sees it.
type Pod struct {
	journal.PodRef
	// Node is the name of the node it is bound to.
	Node string
	// Grace is the time that the pod was given to end, from the request on; zero
	// while nobody has asked it to.
	Grace time.Duration
	// Controller is what makes another in its place, if there is something. Where it
	// and Status are not asked for, both are empty; see [PodWithStatusOf].
	Controller Controller
	Status     PodStatus
}

// Controller is what makes pods: a "DaemonSet", for example, of that name.
type Controller struct{ Kind, Name string }

// PodStatus is what a Pod's kubelet says of it, with times by its clock.
type PodStatus struct {
	// Phase is "Running", for example.
	Phase string
	// NotReadySince is since when the pod's containers are not all ready, though they
	// were not asked to end; zero while they are, or while that is not known.
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
