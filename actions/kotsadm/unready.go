package kotsadm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// unreadyReason returns "" if exactly the wanted replicas exist, all of them ready and of the newest revision,
// otherwise the reason. It reads the pods only if withPods is true.
func unreadyReason(ctx context.Context, objects kube.Objects, withPods bool) (journal.KotsadmFacts, string, error) {
	now, err := kube.Get[appsv1.StatefulSet](ctx, objects, Ref)
	if err != nil {
		return journal.KotsadmFacts{}, "", err
	}
	if now.Status.ObservedGeneration < now.Generation {
		return factsOf(&now), "the StatefulSet controller has not seen the change yet", nil
	}
	missing := missingCondition(now.Status)
	if missing == "" || !withPods {
		return factsOf(&now), missing, nil
	}
	for i := range journal.KotsadmReplicas {
		if why := unreadyPod(ctx, objects, PodRef(i), now.Status.UpdateRevision); why != "" {
			missing += fmt.Sprintf("; %s: %s", PodRef(i).Name, why)
		}
	}
	return factsOf(&now), missing, nil
}

// missingCondition returns the missing condition. While pods of an older revision or too many pods exist, the ready
// pods may be the wrong ones.
func missingCondition(s appsv1.StatefulSetStatus) string {
	var lacks []string
	of := fmt.Sprintf(" of %d replicas are", journal.KotsadmReplicas)
	if s.ReadyReplicas < journal.KotsadmReplicas {
		lacks, of = append(lacks, fmt.Sprintf("%d%s ready", s.ReadyReplicas, of)), ""
	}
	if s.UpdatedReplicas < journal.KotsadmReplicas {
		lacks = append(lacks, fmt.Sprintf("%d%s of the new revision", s.UpdatedReplicas, of))
	}
	if s.Replicas > journal.KotsadmReplicas {
		lacks = append(lacks, fmt.Sprintf("there are %d replicas, want %d", s.Replicas, journal.KotsadmReplicas))
	}
	return strings.Join(lacks, ", ")
}

// unreadyPod returns the reason why a pod is not ready or not of the revision, or "". If the pod cannot be read, the
// error is the reason.
func unreadyPod(ctx context.Context, objects kube.Objects, ref kube.Ref, revision string) string {
	pod, err := kube.Get[corev1.Pod](ctx, objects, ref)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "does not exist"
	case err != nil:
		return err.Error()
	}
	if problem := kube.PodProblem(&pod); problem != "" {
		return problem
	}
	if is := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; is != revision {
		return fmt.Sprintf("of revision %s, not %s, on node %s", is, revision, pod.Spec.NodeName)
	}
	return ""
}
