package minio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/journal"
)

// pod is the part of a Pod that EKCO reads.
type pod struct {
	object
	Spec struct {
		NodeName    string              `json:"nodeName"`
		HostNetwork bool                `json:"hostNetwork"`
		Tolerations []corev1.Toleration `json:"tolerations"`
		Containers  []struct {
			Ports []struct {
				HostPort int `json:"hostPort"`
			} `json:"ports"`
		} `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase             string            `json:"phase"`
		PodIP             string            `json:"podIP"`
		Conditions        []condition       `json:"conditions"`
		ContainerStatuses []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type containerStatus struct {
	Name         string `json:"name"`
	RestartCount int    `json:"restartCount"`
	State        struct {
		Waiting *struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
	} `json:"state"`
}

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
		read, exists, err := getIfExists[pod](ctx, c, PodRef(c.namespace, i))
		if err != nil {
			return nil, err
		}
		if exists {
			read.Metadata.Name = PodRef(c.namespace, i).Name
			pods = append(pods, read)
		}
	}
	return pods, nil
}

func (p pod) facts() journal.MinioPod {
	return journal.MinioPod{Name: p.Metadata.Name, UID: p.Metadata.UID, Node: p.Spec.NodeName, State: p.state()}
}

func (p pod) state() journal.MinioPodState {
	switch {
	case p.Metadata.DeletionTimestamp != "":
		return journal.MinioPodEnds
	case p.Status.Phase == "Running":
		return journal.MinioPodRuns
	case p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded":
		return journal.MinioPodEnded
	case lacksVolume(p.unscheduled().Message):
		return journal.MinioPodLacksVolume
	}
	return journal.MinioPodWaits
}

// unscheduled returns the condition with the reason why the pod has no node, or an empty condition.
func (p pod) unscheduled() condition {
	for _, condition := range p.Status.Conditions {
		if condition.Type == "PodScheduled" && condition.Status == "False" {
			return condition
		}
	}
	return condition{}
}

// lacksVolume reports whether the scheduler's message means that no node has the volume of the pod. Kubernetes 1.32
// changed the text. A claim without a volume is a different case, which the scheduler calls unbound.
func lacksVolume(message string) bool {
	return strings.Contains(message, "volume node affinity conflict") || strings.Contains(message, "match PersistentVolume's node affinity")
}

// unready returns the reason why a pod is not ready, or "". The text has no counts and times, because they change
// often.
func (p pod) unready() string {
	phase := cmp.Or(p.Status.Phase, "Unknown")
	if p.Metadata.DeletionTimestamp != "" {
		phase = "Terminating"
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" && phase == "Running" {
			return ""
		}
	}
	var why []string
	if unscheduled := p.unscheduled(); unscheduled.Message != "" {
		why = append(why, fmt.Sprintf("%s: %s", unscheduled.Reason, unscheduled.Message))
	}
	for _, container := range p.Status.ContainerStatuses {
		if container.State.Waiting != nil {
			why = append(why, fmt.Sprintf("container %s: %s", container.Name, container.State.Waiting.Reason))
		}
	}
	text := phase
	switch {
	case len(why) > 0:
		text += ": " + strings.Join(why, ", ")
	case phase == "Running":
		text += ", not ready"
	}
	if p.Spec.NodeName != "" {
		text += " on node " + p.Spec.NodeName
	}
	return text
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
		there[pod.Metadata.Name] = true
		if why := pod.unready(); why != "" {
			lacks += fmt.Sprintf("; %s: %s", pod.Metadata.Name, why)
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
	at := slices.IndexFunc(seen.pods, func(p pod) bool { return p.Metadata.Name == name })
	if at < 0 {
		return seen.facts, name + ": does not exist", nil
	}
	if why := seen.pods[at].unready(); why != "" {
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
