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

// API is what EKCO asks of MinIO. Errors are those of package kube.
type API interface {
	// Read reads the current objects. It returns kube.ErrNotFound if there is no StatefulSet, or if
	// its annotation with the wanted replicas is missing.
	Read(ctx context.Context) (journal.MinioFacts, error)
	// Scale sets the replicas of the StatefulSet with that UID, and returns the facts after it.
	Scale(ctx context.Context, uid string, replicas int) (journal.MinioFacts, error)
	// Unready says what is missing until all replicas are ready and MinIO is healthy, or returns
	// "".
	Unready(ctx context.Context) (journal.MinioFacts, string, error)
	// UnreadyReplica does the same for one replica; of the others a quorum is enough.
	UnreadyReplica(ctx context.Context, name string) (journal.MinioFacts, string, error)
	// Point makes a Service that EKCO has disabled select that MinIO. A Service that already
	// selects it stays as it is. It returns kube.ErrConflict if the Service selects anything else.
	Point(ctx context.Context, to journal.MinioService) error
	// Leads reads what the Service selects, and its resource version.
	Leads(ctx context.Context) (to journal.MinioService, version string, err error)
	// Selector is Leads with a text that stays the same until a client sets the selector, even if
	// something else of the Service changes. It is empty if the API server does not report who
	// changed what.
	Selector(ctx context.Context) (to journal.MinioService, version, set string, err error)
	// Ours reports whether the Service has that resource version, and EKCO was the last to set its
	// selector. It is false if the API server does not report who set it.
	Ours(ctx context.Context, version string) (bool, error)
	// Healthy returns nil if one of the replicas says that MinIO is healthy.
	Healthy(ctx context.Context) error
	// Observe is Read with the health that the replicas report.
	Observe(ctx context.Context) (journal.MinioFacts, error)
	// Running returns the replicas that run and have an address, in order.
	Running(ctx context.Context) ([]Running, error)
	// Ask asks all running replicas at the same time.
	Ask(ctx context.Context, question Question) []Said
	// Nested returns some of the objects below other objects on the drives of a pod, of either
	// MinIO.
	Nested(ctx context.Context, pod string) ([]Nested, error)
	// Claim returns the claim of a replica's pod, and whether there is one.
	Claim(ctx context.Context, pod string) (Claim, bool, error)
	// DeleteClaim and DeletePod delete the object with that UID. A claim remains while a pod uses
	// it, and a pod until it has terminated.
	DeleteClaim(ctx context.Context, pod, uid string) error
	DeletePod(ctx context.Context, pod, uid string) error

	// Deployment returns the UID of the Deployment of standalone MinIO, "" if there is none. It
	// reads nothing else.
	Deployment(ctx context.Context) (uid string, err error)
	// Single reads the current state of standalone MinIO.
	Single(ctx context.Context) (Single, error)
	// SinglePod reads the pod with that name and UID, and nothing else. There is none if it is
	// gone, or if another pod has its name. It does not say to which Deployment the pod belongs.
	SinglePod(ctx context.Context, name, uid string) (pod SinglePod, exists bool, err error)
	// Successor says why no other pod could replace this one of standalone MinIO. Its Cause is
	// empty if EKCO knows no obstacle.
	Successor(ctx context.Context, of SinglePod) (NoSuccessor, error)
	// Bypasses returns the names of the Services other than minio that select pods of standalone
	// MinIO, and [BypassOfHost] if a port of the node reaches them: a switch of Service minio does
	// not redirect their clients.
	Bypasses(ctx context.Context) ([]string, error)
	// Targets returns the addresses of the running replicas, healthy ones first, or an error if
	// none is healthy.
	Targets(ctx context.Context) ([]string, error)
	// Credentials reads the credentials of both MinIOs. Keep them in memory only.
	Credentials(ctx context.Context) (Credentials, error)
	// Disable makes a Service with that resource version, which selects standalone MinIO, select no
	// pods. It returns the resource version after it. If the Service has changed, it changes
	// nothing and returns kube.ErrConflict.
	Disable(ctx context.Context, version string) (disabled string, err error)
	// Switch points a disabled Service with that resource version to the highly available MinIO.
	// Result and errors are those of Disable.
	Switch(ctx context.Context, version string) (switched string, err error)
	// EndSinglePod asks the pod with that UID to end within the grace period.
	EndSinglePod(ctx context.Context, pod, uid string, grace time.Duration) error
	// SingleClaim returns the claim of standalone MinIO, and whether there is one.
	SingleClaim(ctx context.Context) (Claim, bool, error)
	// DeleteDeployment and DeleteSingleClaim delete the object with that UID.
	DeleteDeployment(ctx context.Context, uid string) error
	DeleteSingleClaim(ctx context.Context, uid string) error
}

// Claim is the claim of a pod of MinIO.
type Claim struct {
	UID string
	// Ends is set once the claim was deleted: it remains only while a pod uses it.
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

// snapshot is what EKCO reads at once, including what changes too often to be a fact.
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
	// It fails if the StatefulSet has changed since it was read.
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
