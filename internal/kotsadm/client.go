package kotsadm

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// API is what EKCO uses of the database's StatefulSet. Errors are those of package kube.
type API interface {
	// Read reads it live.
	Read(ctx context.Context) (journal.KotsadmFacts, error)
	// Scale sets the replicas of the StatefulSet with this UID, and the same number of rqlite members, in one
	// update. It returns the new facts.
	Scale(ctx context.Context, uid string) (journal.KotsadmFacts, error)
	// Unready returns why not all replicas are ready and of the newest revision, or why there are others; "" if
	// neither. It reads the pods only withPods.
	Unready(ctx context.Context, withPods bool) (journal.KotsadmFacts, string, error)
}

// Client is the [API] of a real cluster.
type Client struct {
	objects kube.Objects
}

var _ API = (*Client)(nil)

// NewClient returns a client of the objects.
func NewClient(objects kube.Objects) *Client { return &Client{objects} }

// Ref names the StatefulSet.
var Ref = kube.Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: "default", Name: "kotsadm-rqlite"}

// PodRef names one of its pods.
func PodRef(i int) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: Ref.Namespace, Name: fmt.Sprintf("%s-%d", Ref.Name, i)}
}

// Read implements [API].
func (c *Client) Read(ctx context.Context) (journal.KotsadmFacts, error) {
	read, err := kube.Get[appsv1.StatefulSet](ctx, c.objects, Ref)
	return factsOf(&read), err
}

// Scale implements [API]. kURL's permissions allow neither a patch nor the scale subresource, so it replaces
// the whole object, in the version that it read.
func (c *Client) Scale(ctx context.Context, uid string) (journal.KotsadmFacts, error) {
	return kube.Change[appsv1.StatefulSet, journal.KotsadmFacts]{
		Ref: Ref, UID: uid, Lacks: Lacks,
		Facts: func(read *appsv1.StatefulSet) (journal.KotsadmFacts, string, error) {
			return factsOf(read), string(read.UID), nil
		},
		Write: func(raw json.RawMessage, _ *appsv1.StatefulSet) (json.RawMessage, error) {
			scaled, err := withReplicas(raw, journal.KotsadmReplicas)
			if err != nil {
				return nil, err
			}
			return c.objects.ReplaceObject(ctx, Ref, scaled)
		},
	}.Make(ctx, c.objects)
}

// Lacks returns that the specification has other replicas or members, or "".
func Lacks(now journal.KotsadmFacts) string {
	if now.Scaled() {
		return ""
	}
	return fmt.Sprintf("its spec has %s replicas, want %d", now.Size(), journal.KotsadmReplicas)
}
