package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// API reads and changes MinIO. Its errors are errors of package kube.
type API interface {
	// Read reads the current objects. It returns kube.ErrNotFound if there is no StatefulSet, or if the
	// StatefulSet has no annotation with the wanted replicas.
	Read(ctx context.Context) (journal.MinioFacts, error)
	// Scale sets the replicas of the StatefulSet with that UID, and returns the new facts.
	Scale(ctx context.Context, uid string, replicas int) (journal.MinioFacts, error)
	// Unready returns the reason why a replica is not ready or MinIO is not healthy, or "".
	Unready(ctx context.Context) (journal.MinioFacts, string, error)
	// UnreadyReplica returns the reason why one replica is not ready or MinIO is not healthy, or "".
	UnreadyReplica(ctx context.Context, name string) (journal.MinioFacts, string, error)
	// Point makes the disabled Service select that MinIO. It changes nothing if the Service already selects it. It
	// returns kube.ErrConflict if the Service selects anything else.
	Point(ctx context.Context, to journal.MinioService) error
	// ServiceTarget returns the MinIO that the Service selects, and the Service's resource version.
	ServiceTarget(ctx context.Context) (to journal.MinioService, version string, err error)
	// Selector is ServiceTarget, and also returns set, which identifies the last change of the selector. Other changes of
	// the Service do not change set. It is empty if the API server does not report managed fields.
	Selector(ctx context.Context) (to journal.MinioService, version, set string, err error)
	// LastSetByEKCO reports whether the Service has that resource version, and EKCO was the last client that set its
	// selector. It returns false if the API server does not report managed fields.
	LastSetByEKCO(ctx context.Context, version string) (bool, error)
	// Healthy returns nil if at least one replica reports that MinIO is healthy.
	Healthy(ctx context.Context) error
	// Observe is Read, and also asks the replicas for the health of MinIO.
	Observe(ctx context.Context) (journal.MinioFacts, error)
	// Running returns the replicas that run and have an address, ordered by number.
	Running(ctx context.Context) ([]Running, error)
	// Ask asks all running replicas at the same time.
	Ask(ctx context.Context, question Question) []ReplicaAnswer
	// Nested searches the drives of a pod of either MinIO, and returns examples of objects below other objects.
	Nested(ctx context.Context, pod string) ([]Nested, error)
	// Claim returns the claim of a replica's pod, and reports whether the claim exists.
	Claim(ctx context.Context, pod string) (Claim, bool, error)
	// DeleteClaim and DeletePod delete the object with that UID. A claim remains while a pod uses it. A pod remains
	// until it has terminated.
	DeleteClaim(ctx context.Context, pod, uid string) error
	DeletePod(ctx context.Context, pod, uid string) error

	// Deployment returns the UID of the Deployment of standalone MinIO, or "". It reads only the Deployment.
	Deployment(ctx context.Context) (uid string, err error)
	// Single reads the current state of standalone MinIO.
	Single(ctx context.Context) (Single, error)
	// SinglePod reads only the pod with that name and UID. The pod does not exist if another pod has its name now.
	// SinglePod does not set the field Deployment of the result.
	SinglePod(ctx context.Context, name, uid string) (pod SinglePod, exists bool, err error)
	// Successor returns the reason why no other pod could replace this pod of standalone MinIO. The Cause of the
	// result is empty if EKCO knows no obstacle.
	Successor(ctx context.Context, of SinglePod) (NoSuccessor, error)
	// Bypasses returns the ways to pods of standalone MinIO that Service minio does not control: the names of other
	// Services that select these pods, and [BypassOfHost]. A switch of Service minio does not redirect clients that use
	// them.
	Bypasses(ctx context.Context) ([]string, error)
	// Targets returns the addresses of the running replicas, healthy ones first, or an error if
	// none is healthy.
	Targets(ctx context.Context) ([]string, error)
	// Credentials reads the credentials of both MinIOs. Do not store or log them.
	Credentials(ctx context.Context) (Credentials, error)
	// Disable makes the Service, which selects standalone MinIO, select no pods. It returns the Service's new resource
	// version. If the Service does not have the given version any more, Disable returns kube.ErrConflict and changes
	// nothing.
	Disable(ctx context.Context, version string) (disabled string, err error)
	// Switch makes the disabled Service select the highly available MinIO. Its argument, result and errors are
	// like those of Disable.
	Switch(ctx context.Context, version string) (switched string, err error)
	// EndSinglePod deletes the pod with that UID with the grace period.
	EndSinglePod(ctx context.Context, pod, uid string, grace time.Duration) error
	// SingleClaim returns the claim of standalone MinIO, and reports whether the claim exists.
	SingleClaim(ctx context.Context) (Claim, bool, error)
	// DeleteDeployment and DeleteSingleClaim delete the object with that UID.
	DeleteDeployment(ctx context.Context, uid string) error
	DeleteSingleClaim(ctx context.Context, uid string) error
}

// Claim is the PersistentVolumeClaim of a pod of MinIO.
type Claim struct {
	UID string
	// Ends is set if the claim was deleted and only remains because a pod uses it.
	Ends bool
}

// Client is the [API] of a real cluster.
type Client struct {
	objects   kube.Objects
	servers   Servers
	namespace string
}

var _ API = (*Client)(nil)

// NewClient returns a client of MinIO in that namespace.
func NewClient(objects kube.Objects, servers Servers, namespace string) *Client {
	return &Client{objects, servers, namespace}
}

// Read implements [API].
func (c *Client) Read(ctx context.Context) (journal.MinioFacts, error) {
	seen, err := c.snapshot(ctx)
	return seen.facts, err
}

// snapshot is the facts, with the StatefulSet's status and the pods, which change too often to be facts.
type snapshot struct {
	facts  journal.MinioFacts
	status appsv1.StatefulSetStatus
	pods   []pod
}

func (c *Client) snapshot(ctx context.Context) (snapshot, error) {
	set, err := kube.Get[statefulSet](ctx, c.objects, StatefulSetRef(c.namespace))
	if err != nil {
		return snapshot{}, err
	}
	facts, err := set.facts()
	if err != nil {
		return snapshot{}, fmt.Errorf("read %s: %w", StatefulSetRef(c.namespace), err)
	}
	seen := snapshot{facts: facts, status: set.Status}
	if seen.facts.Deployment, err = c.Deployment(ctx); err != nil {
		return snapshot{}, err
	}
	if seen.facts.Service, err = c.service(ctx); err != nil {
		return snapshot{}, err
	}
	if seen.pods, err = c.pods(ctx, max(facts.Replicas, facts.Desired)); err != nil {
		return snapshot{}, err
	}
	for _, pod := range seen.pods {
		seen.facts.Pods = append(seen.facts.Pods, pod.facts())
	}
	return seen, nil
}

// Deployment implements [API].
func (c *Client) Deployment(ctx context.Context) (string, error) {
	read, _, err := kube.Find[metav1.PartialObjectMetadata](ctx, c.objects, DeploymentRef(c.namespace))
	return string(read.UID), err
}

// Scale implements [API].
func (c *Client) Scale(ctx context.Context, uid string, replicas int) (journal.MinioFacts, error) {
	if err := kube.Retry(kube.ErrConflict, func() error { return c.scale(ctx, uid, replicas) }); err != nil {
		return journal.MinioFacts{}, err
	}
	return c.Read(ctx)
}

func (c *Client) scale(ctx context.Context, uid string, replicas int) error {
	ref := scaleRef(c.namespace)
	now, err := kube.Get[statefulSet](ctx, c.objects, StatefulSetRef(c.namespace))
	switch {
	case err != nil:
		return err
	case string(now.UID) != uid:
		return fmt.Errorf("scale %s: %w: it has UID %s, not %s", ref, kube.ErrOtherUID, now.UID, uid)
	case now.replicas() == replicas:
		return nil
	}
	// The update fails if the StatefulSet has changed since it was read.
	body, err := json.Marshal(map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": metav1.ObjectMeta{Name: App, Namespace: c.namespace, UID: now.UID, ResourceVersion: now.ResourceVersion},
		"spec":     map[string]int{"replicas": replicas},
	})
	if err != nil {
		return fmt.Errorf("scale %s: %w", ref, err)
	}
	raw, err := c.objects.ReplaceObject(ctx, ref, body)
	written, err := kube.Decode[statefulSet](ref, raw, err) // a Scale has the replicas in the same place
	if err == nil && written.replicas() != replicas {
		err = fmt.Errorf("scale %s: the API server stored %d replicas instead of %d; look for a webhook that changes statefulsets", ref, written.replicas(), replicas)
	}
	return err
}
