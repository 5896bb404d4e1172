package monitoring

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Ref identifies the Kubernetes object of a subject.
func Ref(of journal.Subject) kube.Ref {
	ref := kube.Ref{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses", Namespace: "monitoring", Name: "k8s"}
	if of.Kind == journal.MonitoringAlertmanager.Kind {
		ref.Resource, ref.Name = "alertmanagers", "prometheus-alertmanager"
	}
	return ref
}

// resource is the part of a custom resource that EKCO reads.
type resource struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
}

// facts returns the facts. Without spec.replicas, the Prometheus operator creates one replica.
func (o *resource) facts() journal.MonitoringFacts {
	facts := journal.MonitoringFacts{UID: string(o.UID), Generation: o.Generation, Replicas: 1}
	if o.Spec.Replicas != nil {
		facts.Replicas = *o.Spec.Replicas
	}
	return facts
}

// Object returns how EKCO reads the objects without a cache. A missing CRD is also kube.ErrNotFound.
func Object(objects kube.Objects) object.Object[journal.MonitoringFacts] {
	return object.Object[journal.MonitoringFacts]{
		Noun: "object", UID: func(facts journal.MonitoringFacts) string { return facts.UID },
		Read: func(ctx context.Context, of journal.Subject) (journal.MonitoringFacts, error) {
			read, err := kube.Get[resource](ctx, objects, Ref(of))
			return read.facts(), err
		},
	}
}

// scale sets the replicas of the object with this UID, and returns the new facts.
func scale(ctx context.Context, objects kube.Objects, of journal.Subject, replicas int) (journal.MonitoringFacts, error) {
	return kube.Change[resource, journal.MonitoringFacts]{
		Ref: Ref(of), UID: of.UID,
		Facts: func(read *resource) (journal.MonitoringFacts, string, error) {
			return read.facts(), string(read.UID), nil
		},
		Lacks: func(now journal.MonitoringFacts) string { return missingReason(replicas, now) },
		Write: func(_ json.RawMessage, read *resource) (json.RawMessage, error) {
			return objects.PatchObject(ctx, Ref(of), replicasPatch(read, replicas))
		},
	}.Make(ctx, objects)
}

// missingReason returns a reason if an object has another number of replicas, or "".
func missingReason(replicas int, now journal.MonitoringFacts) string {
	if now.Replicas == replicas {
		return ""
	}
	return fmt.Sprintf("it has %d replicas, want %d", now.Replicas, replicas)
}

// replicasPatch changes only the replicas. It changes nothing if the old value is no longer there.
func replicasPatch(now *resource, replicas int) []kube.PatchOp {
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
