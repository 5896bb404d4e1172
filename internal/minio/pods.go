package minio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

type pod struct{ corev1.Pod }

// onHost reports whether clients can reach the pod at an address of its node.
func (p pod) onHost() bool {
	for _, container := range p.Spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort != 0 {
				return true
			}
		}
	}
	return p.Spec.HostNetwork
}

// pods returns the pods of the first replicas, as far as they exist.
func (c *Client) pods(ctx context.Context, replicas int) ([]pod, error) {
	var pods []pod
	for i := range replicas {
		read, exists, err := kube.Find[pod](ctx, c.objects, PodRef(c.namespace, i))
		if err != nil {
			return nil, err
		}
		if exists {
			read.Name = PodRef(c.namespace, i).Name
			pods = append(pods, read)
		}
	}
	return pods, nil
}

func (p pod) facts() journal.MinioPod {
	return journal.MinioPod{Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName, State: p.state()}
}

func (p pod) state() journal.MinioPodState {
	switch {
	case p.DeletionTimestamp != nil:
		return journal.MinioPodEnds
	case p.Status.Phase == corev1.PodRunning:
		return journal.MinioPodRuns
	case p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		return journal.MinioPodEnded
	case slices.ContainsFunc(p.Status.Conditions, lacksVolume):
		return journal.MinioPodLacksVolume
	}
	return journal.MinioPodWaits
}

// lacksVolume reports whether the scheduler's message means that no node has the volume of the pod. Kubernetes 1.32
// changed the text. A claim without a volume is a different case, which the scheduler calls unbound.
func lacksVolume(c corev1.PodCondition) bool {
	return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
		(strings.Contains(c.Message, "volume node affinity conflict") || strings.Contains(c.Message, "match PersistentVolume's node affinity"))
}

// Unready implements [API].
func (c *Client) Unready(ctx context.Context) (journal.MinioFacts, string, error) {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return journal.MinioFacts{}, "", err
	}
	lacks := seen.lacks()
	if lacks == "" {
		if health := c.checkHealth(ctx, seen.pods); health != nil {
			lacks = health.Error()
		}
		return seen.facts, lacks, nil
	}
	there := map[string]bool{}
	for _, pod := range seen.pods {
		there[pod.Name] = true
		if why := kube.PodProblem(&pod.Pod); why != "" {
			lacks += fmt.Sprintf("; %s: %s", pod.Name, why)
		}
	}
	for i := range seen.facts.Replicas {
		if name := PodRef(c.namespace, i).Name; !there[name] {
			lacks += fmt.Sprintf("; %s: does not exist", name)
		}
	}
	return seen.facts, lacks, nil
}

// UnreadyReplica implements [API].
func (c *Client) UnreadyReplica(ctx context.Context, name string) (journal.MinioFacts, string, error) {
	seen, err := c.snapshot(ctx)
	if err != nil {
		return journal.MinioFacts{}, "", err
	}
	at := slices.IndexFunc(seen.pods, func(p pod) bool { return p.Name == name })
	if at < 0 {
		return seen.facts, name + ": does not exist", nil
	}
	if why := kube.PodProblem(&seen.pods[at].Pod); why != "" {
		return seen.facts, fmt.Sprintf("%s: %s", name, why), nil
	}
	var lacks string
	if health := c.checkHealth(ctx, seen.pods); health != nil {
		lacks = health.Error()
	}
	return seen.facts, lacks, nil
}

// runs reports whether the replica runs and has an address.
func (p pod) runs() bool { return p.state() == journal.MinioPodRuns && p.Status.PodIP != "" }

// starts reports whether the replica runs but has no address yet.
func (p pod) starts() bool { return p.state() == journal.MinioPodRuns && p.Status.PodIP == "" }

var errNoAddress = errors.New("it runs but has no address yet")
