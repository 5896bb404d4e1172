// Package envoy is the source of facts about Envoy's pods. It watches the pods with Envoy's label in Contour's
// namespace. It records only pods that run but are not ready, so a cluster with working Envoys costs one quiet watch.
package envoy

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/replicatedhq/ekco/internal/envoy"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Actor is the actor of events about Envoy.
const Actor = "observer/envoy"

const (
	name    = "envoy pods"
	machine = "envoy"
	kind    = "Envoy"
)

// Options of [New].
type Options struct {
	// Pods is the source of the pods with Envoy's label in Contour's namespace.
	Pods kube.Source
	// Known has the unready pods according to the journal, by the names of their subjects.
	Known map[string]journal.EnvoyPod
}

// New returns a source of unready pods.
func New(options Options) observers.Source {
	return observers.Watch(observers.Watched[journal.EnvoyPod]{
		Name: name, From: options.Pods, Object: &corev1.Pod{}, Read: read,
		Noun: noun(options.Known, "it is ready, terminating or gone"),
	})
}

// Off returns a source that reads nothing. It records known pods as gone, with why as the reason.
func Off(known map[string]journal.EnvoyPod, why string) observers.Source {
	return observers.Poll(observers.Polled[journal.EnvoyPod]{
		Name: name, Noun: noun(known, why),
		Ask: func(context.Context) (map[string]journal.EnvoyPod, error) { return nil, nil },
	})
}

// read returns the name of the subject, and its pod if the pod is unready. A DaemonSet has one pod per node, so the
// name does not change when the pod is replaced.
func read(obj runtime.Object) (thing string, pod journal.EnvoyPod, unready bool) {
	o, ok := obj.(*corev1.Pod)
	if !ok {
		return "", journal.EnvoyPod{}, false
	}
	now := kube.PodWithStatusOf(o)
	since, unready := envoy.Unready(now)
	thing = now.Name
	if now.Controller.Kind == "DaemonSet" {
		thing = now.Node + "/" + now.Controller.Name
	}
	return thing, envoy.Of(now, since), unready
}

// noun returns the definition of the records. gone is the reason to record when EKCO no longer sees a pod, because EKCO
// does not know the real reason.
func noun(known map[string]journal.EnvoyPod, gone string) observers.Noun[journal.EnvoyPod] {
	return observers.Noun[journal.EnvoyPod]{
		Observed: func(thing string, pod journal.EnvoyPod) journal.Draft {
			facts, err := json.Marshal(pod)
			if err != nil {
				panic(err) // a value of this type can always be encoded
			}
			return draft(journal.TypeThingObserved, thing, pod, journal.ThingObserved{Machine: machine, Facts: facts})
		},
		Gone: func(thing string, pod journal.EnvoyPod, _ string) journal.Draft {
			return draft(journal.TypeThingGone, thing, pod, journal.ThingGone{Machine: machine, Reason: gone})
		},
		Equal: journal.EnvoyPod.Equal,
		UID:   func(pod journal.EnvoyPod) string { return pod.UID },
		// A kubelet can change the status of its pods at any rate.
		Allowance: observers.Allowance{Burst: 10, Every: time.Minute},
		Known:     maps.All(known),
	}
}

func draft(event journal.Type, thing string, pod journal.EnvoyPod, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: Actor, Subject: journal.Subject{Kind: kind, Name: thing, Node: pod.Node}, Payload: payload}
}
