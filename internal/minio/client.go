package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// API is what EKCO asks of MinIO. Errors are those of package kube.
type API interface {
	// Read reads live what there is. It returns kube.ErrNotFound if there is no
	// StatefulSet, or none that says how many replicas EKCO shall give it.
	Read(ctx context.Context) (journal.MinioFacts, error)
	// Scale gives the StatefulSet of that UID so many replicas, and returns what there
	// is then.
	Scale(ctx context.Context, uid string, replicas int) (journal.MinioFacts, error)
	// Unready says for people what is lacking until all replicas are ready and MinIO is
	// healthy, or returns "".
	Unready(ctx context.Context) (journal.MinioFacts, string, error)
	// UnreadyReplica is the same of one replica; the others need only be a quorum.
	UnreadyReplica(ctx context.Context, name string) (journal.MinioFacts, string, error)
	// Point has a Service that EKCO has disabled lead there; one that leads there already
	// is left as it is. It returns kube.ErrConflict if the Service leads elsewhere.
	Point(ctx context.Context, to journal.MinioService) error
	// Leads reads live where the Service leads, and its resource version, which each change
	// of it makes another.
	Leads(ctx context.Context) (to journal.MinioService, version string, err error)
	// Selector is Leads with a text that is the same as long as nobody has led the Service elsewhere, also if
	// something else of it was changed; it is empty where the API server does not say who changed what.
	Selector(ctx context.Context) (to journal.MinioService, version, set string, err error)
	// Ours reports whether the Service has that resource version, and was led where it leads by
	// an EKCO: nobody has led it elsewhere since that. It is false also where the API server does
	// not say who changed it.
	Ours(ctx context.Context, version string) (bool, error)
	// Healthy returns nil if one of the replicas says that MinIO is healthy.
	Healthy(ctx context.Context) error
	// Observe is Read with the health that the replicas tell of.
	Observe(ctx context.Context) (journal.MinioFacts, error)
	// Running returns the replicas that run and have an address, in order.
	Running(ctx context.Context) ([]Running, error)
	// Ask asks all replicas that run, side by side.
	Ask(ctx context.Context, question Question) []Said
	// Nested returns some of the objects on the drives of a pod, of either MinIO, that lie below
	// another object.
	Nested(ctx context.Context, pod string) ([]Nested, error)
	// Claim returns the claim of a replica's pod, and whether there is one.
	Claim(ctx context.Context, pod string) (Claim, bool, error)
	// DeleteClaim and DeletePod delete what has that UID. A claim stays as long as a pod
	// uses it, and a pod for as long as it takes to end.
	DeleteClaim(ctx context.Context, pod, uid string) error
	DeletePod(ctx context.Context, pod, uid string) error

	// Deployment returns the UID of the Deployment of the single MinIO, "" if there is none.
	// It is one read, of nothing else.
	Deployment(ctx context.Context) (uid string, err error)
	// Single reads live what there is of the single MinIO.
	Single(ctx context.Context) (Single, error)
	// SinglePod reads live the pod of that name and UID, and nothing else; none where it is
	// gone, or another one has its name. It does not say of which Deployment that is.
	SinglePod(ctx context.Context, name, uid string) (pod SinglePod, exists bool, err error)
	// Successor says why no other pod would start in the place of this one of the single
	// MinIO. It has no cause if nothing is known that speaks against it.
	Successor(ctx context.Context, of SinglePod) (NoSuccessor, error)
	// Bypasses returns the names of the Services besides minio that lead to pods of the single
	// MinIO, and [BypassOfHost] where their nodes do: their clients are not led elsewhere with it.
	Bypasses(ctx context.Context) ([]string, error)
	// Targets returns the addresses of the replicas that run, healthy ones first; an error
	// if none is healthy.
	Targets(ctx context.Context) ([]string, error)
	// Credentials reads those of both. They are to be held in memory only.
	Credentials(ctx context.Context) (Credentials, error)
	// Disable has a Service of that resource version that leads to the single MinIO lead nowhere. It
	// returns kube.ErrConflict, and nothing is changed, if anything of the Service was changed since.
	// It returns the version that the Service has then.
	Disable(ctx context.Context, version string) (disabled string, err error)
	// Switch has a disabled Service of that resource version lead to the highly available
	// MinIO. It returns kube.ErrConflict, and nothing is changed, if anything of the Service
	// was changed since. It returns the version that the Service has then.
	Switch(ctx context.Context, version string) (switched string, err error)
	// EndSinglePod asks the pod of that UID to end within that time.
	EndSinglePod(ctx context.Context, pod, uid string, grace time.Duration) error
	// SingleClaim returns the claim of the single MinIO, and whether there is one.
	SingleClaim(ctx context.Context) (Claim, bool, error)
	// DeleteDeployment and DeleteSingleClaim delete what has that UID.
	DeleteDeployment(ctx context.Context, uid string) error
	DeleteSingleClaim(ctx context.Context, uid string) error
}

// Claim is that of a replica's pod.
type Claim struct {
	UID string
	// Ends: it was deleted, and stays only as long as a pod uses it.
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

// decode reads what was answered about an object.
func decode[V any](ref kube.Ref, raw json.RawMessage, err error) (read V, _ error) {
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return read, fmt.Errorf("read %s: %w", ref, err)
	}
	return read, nil
}

// get reads an object live.
func get[V any](ctx context.Context, c *Client, ref kube.Ref) (V, error) {
	raw, err := c.objects.ReadObject(ctx, ref)
	return decode[V](ref, raw, err)
}

// found is get for what need not be there.
func found[V any](ctx context.Context, c *Client, ref kube.Ref) (read V, exists bool, err error) {
	read, err = get[V](ctx, c, ref)
	if errors.Is(err, kube.ErrNotFound) {
		return read, false, nil
	}
	return read, err == nil, err
}

// Read implements [API].
func (c *Client) Read(ctx context.Context) (journal.MinioFacts, error) {
	seen, err := c.look(ctx)
	return seen.facts, err
}

// view is what there is, with what changes too often to be facts.
type view struct {
	facts  journal.MinioFacts
	status status
	pods   []pod
}

func (c *Client) look(ctx context.Context) (view, error) {
	set, err := get[statefulSet](ctx, c, StatefulSetRef(c.namespace))
	if err != nil {
		return view{}, err
	}
	facts, err := set.facts()
	if err != nil {
		return view{}, fmt.Errorf("read %s: %w", StatefulSetRef(c.namespace), err)
	}
	seen := view{facts: facts, status: set.Status}
	if seen.facts.Deployment, err = c.Deployment(ctx); err != nil {
		return view{}, err
	}
	if seen.facts.Service, err = c.service(ctx); err != nil {
		return view{}, err
	}
	if seen.pods, err = c.pods(ctx, max(facts.Replicas, facts.Desired)); err != nil {
		return view{}, err
	}
	for _, pod := range seen.pods {
		seen.facts.Pods = append(seen.facts.Pods, pod.facts())
	}
	return seen, nil
}

// Deployment implements [API].
func (c *Client) Deployment(ctx context.Context) (string, error) {
	read, _, err := found[object](ctx, c, DeploymentRef(c.namespace))
	return read.Metadata.UID, err
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
	now, err := get[statefulSet](ctx, c, StatefulSetRef(c.namespace))
	switch {
	case err != nil:
		return err
	case now.Metadata.UID != uid:
		return fmt.Errorf("scale %s: %w: it has UID %s, not %s", ref, kube.ErrOtherUID, now.Metadata.UID, uid)
	case now.replicas() == replicas:
		return nil
	}
	body, err := json.Marshal(scaleOf(now, c.namespace, replicas))
	if err != nil {
		return fmt.Errorf("scale %s: %w", ref, err)
	}
	raw, err := c.objects.ReplaceObject(ctx, ref, body)
	written, err := decode[scale](ref, raw, err)
	if err == nil && written.Spec.Replicas != replicas {
		err = fmt.Errorf("scale %s: the API server stored %d replicas instead of %d; look for a webhook that changes statefulsets", ref, written.Spec.Replicas, replicas)
	}
	return err
}
