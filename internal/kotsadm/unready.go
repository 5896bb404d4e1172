package kotsadm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Unready implements [API].
func (c *Client) Unready(ctx context.Context, withPods bool) (journal.KotsadmFacts, string, error) {
	now, err := c.read(ctx)
	if err != nil {
		return journal.KotsadmFacts{}, "", err
	}
	if now.Status.ObservedGeneration < now.Metadata.Generation {
		return now.facts(), "the StatefulSet controller has not seen the change yet", nil
	}
	lacks := now.Status.lacks()
	if lacks == "" || !withPods {
		return now.facts(), lacks, nil
	}
	for i := range journal.KotsadmReplicas {
		if why := c.unreadyPod(ctx, PodRef(i), now.Status.UpdateRevision); why != "" {
			lacks += fmt.Sprintf("; %s: %s", PodRef(i).Name, why)
		}
	}
	return now.facts(), lacks, nil
}

// lacks returns what is missing. While there are pods of an older revision, or too many, the ready ones need
// not be the wanted ones.
func (s status) lacks() string {
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

// pod is the part that EKCO reads.
type pod struct {
	Metadata struct {
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	State struct {
		Waiting *struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
	} `json:"state"`
	LastState struct {
		Terminated *struct {
			Reason   string `json:"reason"`
			ExitCode int    `json:"exitCode"`
		} `json:"terminated"`
	} `json:"lastState"`
}

// revisionLabel is the label with a pod's revision.
const revisionLabel = "controller-revision-hash"

// unreadyPod returns why a pod is not ready or not of that revision, or "". A failed read is a reason too,
// since the real one is unknown then.
func (c *Client) unreadyPod(ctx context.Context, ref kube.Ref, revision string) string {
	raw, err := c.objects.ReadObject(ctx, ref)
	if errors.Is(err, kube.ErrNotFound) {
		return "does not exist"
	}
	var read pod
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		return err.Error()
	}
	return cmp.Or(read.unready(), read.otherRevision(revision))
}

func (p pod) unready() string {
	status := cmp.Or(p.Status.Phase, "Unknown")
	if p.Metadata.DeletionTimestamp != "" {
		status = "Terminating"
	}
	for _, condition := range p.Status.Conditions {
		switch {
		case condition.Type == "Ready" && condition.Status == "True" && status == "Running":
			return ""
		case condition.Type == "PodScheduled" && condition.Status == "False":
			return fmt.Sprintf("%s: %s: %s", status, condition.Reason, condition.Message)
		}
	}
	var why []string
	for _, container := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		if text := container.waitsFor(); text != "" {
			why = append(why, text)
		}
	}
	switch {
	case len(why) > 0:
		status += ": " + strings.Join(why, ", ")
	case status == "Running":
		status += ", not ready"
	}
	return status + p.where(" ")
}

// otherRevision returns that the pod has another revision, or "".
func (p pod) otherRevision(revision string) string {
	if is := p.Metadata.Labels[revisionLabel]; is != revision {
		return fmt.Sprintf("of revision %s, not %s%s", is, revision, p.where(", "))
	}
	return ""
}

func (p pod) where(separator string) string {
	if p.Spec.NodeName == "" {
		return ""
	}
	return separator + "on node " + p.Spec.NodeName
}

// waitsFor returns what a container waits for, or "". Counts and times are left out, since they always change.
func (c containerStatus) waitsFor() string {
	if c.State.Waiting == nil {
		return ""
	}
	text := fmt.Sprintf("container %s: %s", c.Name, c.State.Waiting.Reason)
	if last := c.LastState.Terminated; last != nil {
		text += fmt.Sprintf(" (last ended with exit code %d, %s)", last.ExitCode, last.Reason)
	}
	return text
}
