package minio

import (
	"fmt"
	"strconv"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// object is the part of every object that EKCO reads.
type object struct {
	Metadata metadata `json:"metadata"`
}

type metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Generation        int64             `json:"generation,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	OwnerReferences   []owner           `json:"ownerReferences,omitempty"`
}

// controller returns the controller of the object, or an empty owner.
func (m metadata) controller() owner {
	for _, owner := range m.OwnerReferences {
		if owner.Controller {
			return owner
		}
	}
	return owner{}
}

type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// statefulSet is the part of a StatefulSet that EKCO reads.
type statefulSet struct {
	object
	Spec struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
	Status status `json:"status"`
}

// status is what the StatefulSet controller reports.
type status struct {
	ObservedGeneration int64 `json:"observedGeneration"`
	Replicas           int   `json:"replicas"`
	ReadyReplicas      int   `json:"readyReplicas"`
}

func (s statefulSet) replicas() int {
	return replicasOrDefault(s.Spec.Replicas)
}

// replicasOrDefault returns the number of replicas, with the API server's default of 1.
func replicasOrDefault(asked *int) int {
	if asked == nil {
		return 1
	}
	return *asked
}

// maxReplicas is the maximum number of replicas that EKCO supports, because it reads their pods one by one. A higher
// number is probably a mistake.
const maxReplicas = 64

// facts returns the facts. It returns kube.ErrNotFound if the annotation is missing, because EKCO does not manage
// a StatefulSet without it.
func (s statefulSet) facts() (journal.MinioFacts, error) {
	text, asks := s.Metadata.Annotations[desiredScale]
	if !asks {
		return journal.MinioFacts{}, fmt.Errorf("%w: it has no annotation %s", kube.ErrNotFound, desiredScale)
	}
	desired, err := strconv.Atoi(text)
	if err != nil || desired < 0 {
		return journal.MinioFacts{}, fmt.Errorf("its annotation %s is %q; set it to the number of replicas that MinIO should have", desiredScale, text)
	}
	if desired > maxReplicas {
		return journal.MinioFacts{}, fmt.Errorf("its annotation %s is %q, but EKCO supports at most %d replicas; lower it", desiredScale, text, maxReplicas)
	}
	if s.replicas() > maxReplicas {
		return journal.MinioFacts{}, fmt.Errorf("it has %d replicas, but EKCO supports at most %d; lower the number", s.replicas(), maxReplicas)
	}
	return journal.MinioFacts{UID: s.Metadata.UID, Generation: s.Metadata.Generation, Replicas: s.replicas(), Desired: desired}, nil
}

// lacks returns the reason why not all replicas are ready, or "".
func (v snapshot) lacks() string {
	switch {
	case v.status.ObservedGeneration < v.facts.Generation:
		return "the controller of StatefulSets has not seen the change yet"
	case v.status.ReadyReplicas < v.facts.Replicas:
		return fmt.Sprintf("%d of %d replicas are ready", v.status.ReadyReplicas, v.facts.Replicas)
	case v.status.Replicas > v.facts.Replicas:
		return fmt.Sprintf("there are %d replicas, want %d", v.status.Replicas, v.facts.Replicas)
	}
	return ""
}

// scale is the subresource of a StatefulSet that sets its replicas.
type scale struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

// newScale returns an update that fails if the StatefulSet has changed since it was read.
func newScale(now statefulSet, namespace string, replicas int) scale {
	changed := scale{APIVersion: "autoscaling/v1", Kind: "Scale", Metadata: metadata{
		Name: App, Namespace: namespace, UID: now.Metadata.UID, ResourceVersion: now.Metadata.ResourceVersion,
	}}
	changed.Spec.Replicas = replicas
	return changed
}
