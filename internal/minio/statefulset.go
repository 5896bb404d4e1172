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
	return replicasOf(s.Spec.Replicas)
}

// replicasOf returns the replicas with the default of the API server.
func replicasOf(asked *int32) int {
	if asked == nil {
		return 1
	}
	return int(*asked)
}

// maxReplicas is how many replicas EKCO supports: it reads them one by one. A higher number is a
// mistake.
const maxReplicas = 64

// facts returns an error that is kube.ErrNotFound if the annotation is missing: EKCO does not
// manage such a StatefulSet.
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

// lacks says what is missing until all replicas are ready, or returns "".
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
