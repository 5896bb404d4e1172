// Package envoy is where facts of Envoy's pods come from: a watch of the pods with Envoy's
// label in Contour's namespace. Only those are told of that run and are not ready, so that
// a cluster whose Envoys work costs one quiet watch and nothing else.
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

// Actor is under whom facts of Envoy are recorded.
const Actor = "observer/envoy"

const (
	name    = "envoy pods"
	machine = "envoy"
	kind    = "Envoy"
)

// Options of [New].
type Options struct {
	// Pods are those with Envoy's label in Contour's namespace.
	Pods kube.Source
	// Known are the pods that the journal says are unready, by the names of the things.
	Known map[string]journal.EnvoyPod
}

// New returns a source that tells of unready pods.
func New(options Options) observers.Source {
	return observers.Watch(observers.Watched[journal.EnvoyPod]{
		Name: name, From: options.Pods, Object: &corev1.Pod{}, Read: read,
		Noun: noun(options.Known, "it is ready, was asked to end, or is gone"),
	})
}

// Off returns a source that looks nowhere. Of what is known it tells why that does not
// concern EKCO any more.
func Off(known map[string]journal.EnvoyPod, why string) observers.Source {
	return observers.Poll(observers.Polled[journal.EnvoyPod]{
		Name: name, Noun: noun(known, why),
		Ask: func(context.Context) (map[string]journal.EnvoyPod, error) { return nil, nil },
	})
}

// read returns Envoy's name and its pod, if that is unready. A DaemonSet has one pod on
// each node, and its Envoy there is the same whatever its pod is called.
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

// noun tells of what is gone for that reason: from what is no longer seen, only that much
// follows.
func noun(known map[string]journal.EnvoyPod, gone string) observers.Noun[journal.EnvoyPod] {
	return observers.Noun[journal.EnvoyPod]{
		Observed: func(thing string, pod journal.EnvoyPod) journal.Draft {
			facts, err := json.Marshal(pod)
			if err != nil {
				panic(err) // no value of this type cannot be encoded
			}
			return draft(journal.TypeThingObserved, thing, pod, journal.ThingObserved{Machine: machine, Facts: facts})
		},
		Gone: func(thing string, pod journal.EnvoyPod, _ string) journal.Draft {
			return draft(journal.TypeThingGone, thing, pod, journal.ThingGone{Machine: machine, Reason: gone})
		},
		Equal: journal.EnvoyPod.Equal,
		UID:   func(pod journal.EnvoyPod) string { return pod.UID },
		// A kubelet can change the status of its pods as often as it likes.
		Allowance: observers.Allowance{Burst: 10, Every: time.Minute},
		Known:     maps.All(known),
	}
}

func draft(event journal.Type, thing string, pod journal.EnvoyPod, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: event, Actor: Actor, Subject: journal.Subject{Kind: kind, Name: thing, Node: pod.Node}, Payload: payload}
}
