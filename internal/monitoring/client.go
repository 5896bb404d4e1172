package monitoring

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// API is what EKCO uses of the custom resources. Errors are those of package kube.
type API interface {
	// Read reads the object live. It returns kube.ErrNotFound also if the CRD is missing.
	Read(ctx context.Context, of journal.Subject) (journal.MonitoringFacts, error)
	// Scale sets the replicas of the object with that UID, and returns the new facts.
	Scale(ctx context.Context, of journal.Subject, replicas int) (journal.MonitoringFacts, error)
}

// Client is the [API] of a real cluster.
type Client struct {
	objects kube.Objects
}

var _ API = (*Client)(nil)

// NewClient returns a client of the objects.
func NewClient(objects kube.Objects) *Client { return &Client{objects} }

// Ref names the object of a subject.
func Ref(of journal.Subject) kube.Ref {
	ref := kube.Ref{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses", Namespace: "monitoring", Name: "k8s"}
	if of.Kind == journal.MonitoringAlertmanager.Kind {
		ref.Resource, ref.Name = "alertmanagers", "prometheus-alertmanager"
	}
	return ref
}

// object is the part that EKCO reads.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
}

// facts returns the facts. Without spec.replicas, the Prometheus operator creates one replica.
func (o object) facts() journal.MonitoringFacts {
	facts := journal.MonitoringFacts{UID: string(o.UID), Generation: o.Generation, Replicas: 1}
	if o.Spec.Replicas != nil {
		facts.Replicas = *o.Spec.Replicas
	}
	return facts
}

// Read implements [API].
func (c *Client) Read(ctx context.Context, of journal.Subject) (journal.MonitoringFacts, error) {
	read, err := kube.Get[object](ctx, c.objects, Ref(of))
	return read.facts(), err
}

// Scale implements [API].
func (c *Client) Scale(ctx context.Context, of journal.Subject, replicas int) (journal.MonitoringFacts, error) {
	var facts journal.MonitoringFacts
	err := kube.Retry(kube.ErrConflict, func() (err error) {
		facts, err = c.scale(ctx, of, replicas)
		return err
	})
	return facts, err
}

func (c *Client) scale(ctx context.Context, of journal.Subject, replicas int) (journal.MonitoringFacts, error) {
	ref := Ref(of)
	now, err := kube.Get[object](ctx, c.objects, ref)
	switch {
	case err != nil:
		return journal.MonitoringFacts{}, err
	case string(now.UID) != of.UID:
		return journal.MonitoringFacts{}, fmt.Errorf("scale %s: %w: it has UID %s, not %s", ref, kube.ErrOtherUID, now.UID, of.UID)
	case now.facts().Replicas == replicas:
		return now.facts(), nil
	}
	raw, err := c.objects.PatchObject(ctx, ref, patch(now, replicas))
	return changed(ref, raw, replicas, err)
}

// patch changes only the replicas, and nothing if the old value has changed.
func patch(now object, replicas int) []kube.PatchOp {
	tests := []kube.PatchOp{{Op: "test", Path: "/metadata/uid", Value: now.UID}}
	if now.Spec.Replicas == nil {
		return append(tests,
			kube.PatchOp{Op: "test", Path: "/metadata/resourceVersion", Value: now.ResourceVersion},
			kube.PatchOp{Op: "add", Path: "/spec/replicas", Value: replicas})
	}
	return append(tests,
		kube.PatchOp{Op: "test", Path: "/spec/replicas", Value: *now.Spec.Replicas},
		kube.PatchOp{Op: "replace", Path: "/spec/replicas", Value: replicas})
}

// changed reads the answer to a patch, in which a webhook may have changed the number.
func changed(ref kube.Ref, raw json.RawMessage, replicas int, err error) (journal.MonitoringFacts, error) {
	now, err := kube.Decode[object](ref, raw, err)
	facts := now.facts()
	if err == nil && facts.Replicas != replicas {
		err = fmt.Errorf("scale %s: the API server stored %d replicas, not %d; look for a webhook that changes %s", ref, facts.Replicas, replicas, ref.Resource)
	}
	return facts, err
}
