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
	ref := Ref(of)
	return kube.Change[object, journal.MonitoringFacts]{
		Ref: ref, UID: of.UID,
		Facts: func(read *object) (journal.MonitoringFacts, string, error) {
			return read.facts(), string(read.UID), nil
		},
		Lacks: func(now journal.MonitoringFacts) string { return Lacks(now, replicas) },
		Write: func(_ json.RawMessage, read *object) (json.RawMessage, error) {
			return c.objects.PatchObject(ctx, ref, patch(*read, replicas))
		},
	}.Make(ctx, c.objects)
}

// Lacks returns that an object has another number of replicas, or "".
func Lacks(now journal.MonitoringFacts, replicas int) string {
	if now.Replicas == replicas {
		return ""
	}
	return fmt.Sprintf("it has %d replicas, want %d", now.Replicas, replicas)
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
