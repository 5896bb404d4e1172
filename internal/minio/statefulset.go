package minio

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

type statefulSet struct{ appsv1.StatefulSet }

func (s statefulSet) replicas() int {
	return replicasOrDefault(s.Spec.Replicas)
}

// replicasOrDefault returns the number of replicas, with the API server's default of 1.
func replicasOrDefault(asked *int32) int {
	if asked == nil {
		return 1
	}
	return int(*asked)
}

// maxReplicas is the maximum number of replicas that EKCO supports, because it reads their pods one by one. A higher
// number is probably a mistake.
const maxReplicas = 64

// facts returns the facts. It returns kube.ErrNotFound if the annotation is missing, because EKCO does not manage
// a StatefulSet without it.
func (s statefulSet) facts() (journal.MinioFacts, error) {
	text, asks := s.Annotations[desiredScale]
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
	return journal.MinioFacts{UID: string(s.UID), Generation: s.Generation, Replicas: s.replicas(), Desired: desired}, nil
}

// lacks returns the reason why not all replicas are ready, or "".
func (v snapshot) lacks() string {
	switch {
	case v.status.ObservedGeneration < v.facts.Generation:
		return "the controller of StatefulSets has not seen the change yet"
	case int(v.status.ReadyReplicas) < v.facts.Replicas:
		return fmt.Sprintf("%d of %d replicas are ready", v.status.ReadyReplicas, v.facts.Replicas)
	case int(v.status.Replicas) > v.facts.Replicas:
		return fmt.Sprintf("there are %d replicas, want %d", v.status.Replicas, v.facts.Replicas)
	}
	return ""
}
