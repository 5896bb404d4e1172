package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const (
	doesDeletePod    = "delete-pod"
	deletePodTimeout = 30 * time.Second
)

// clearNode frees the pods of a lost node.
type clearNode struct {
	preflights map[string]Preflight
	steps      map[string]Step
}

// NewClearNode returns the kind that force-deletes the requested pods of a lost
// node, each in a step of its own, so that one pod that cannot be deleted does
// not stop the others. Before each batch the Node is read live: once it answers
// again, or another Node has its name, no further pod is deleted. Pods that
// start terminating later are another action's.
func NewClearNode(api kube.API) Kind {
	return clearNode{
		preflights: map[string]Preflight{NodeStillGone: nodeStillGone{api: api, replaced: replacedNodeRunsPods}},
		steps:      map[string]Step{doesDeletePod: deletePod{api}},
	}
}

// replacedNodeRunsPods: the kubelet of the new Node may be the one that runs,
// or ends, the pods.
func replacedNodeRunsPods(_ journal.ActionRecord, live kube.Node) Verdict {
	return Abandon(fmt.Sprintf("node %s was replaced: its uid is %s now", live.Name, live.UID))
}

// Plan implements [Kind].
func (clearNode) Plan(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	plan := journal.Plan{Steps: make([]journal.PlannedStep, 0, len(record.Request.Pods))}
	seen := make(map[string]bool, len(record.Request.Pods))
	for _, pod := range record.Request.Pods {
		input, err := json.Marshal(pod)
		if err != nil {
			return journal.Plan{}, fmt.Errorf("write down pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		id := "delete-pod " + pod.Namespace + "/" + pod.Name
		if seen[id] {
			id += " " + pod.UID
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		plan.Steps = append(plan.Steps, journal.PlannedStep{
			ID: id, Does: doesDeletePod, Input: input,
			Preflights: []string{NodeStillGone}, Timeout: journal.Duration(deletePodTimeout),
		})
	}
	return plan, nil
}

// Step implements [Kind].
func (k clearNode) Step(does string) (Step, bool) { s, ok := k.steps[does]; return s, ok }

// Preflights implements [Kind].
func (k clearNode) Preflights() map[string]Preflight { return k.preflights }

// deletePod force-deletes the pod of one UID.
type deletePod struct{ api kube.API }

// Prove implements [Step].
func (s deletePod) Prove(ctx context.Context, step StepContext) (Proof, error) {
	var pod journal.PodRef
	if err := step.Input(&pod); err != nil {
		return Proof{}, err
	}
	live, err := s.api.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return Proof{Done: true}, nil
	case err != nil:
		return Proof{}, fmt.Errorf("read pod %s/%s: %w", pod.Namespace, pod.Name, missing(err, "get", "pods"))
	case live.UID != pod.UID:
		return Proof{Done: true}, nil
	}
	return Proof{Missing: fmt.Sprintf("pod %s/%s still exists; look for finalizers on it", pod.Namespace, pod.Name)}, nil
}

// Do implements [Step].
func (s deletePod) Do(ctx context.Context, step StepContext) (json.RawMessage, error) {
	var pod journal.PodRef
	if err := step.Input(&pod); err != nil {
		return nil, err
	}
	if err := deleted(s.api.ForceDeletePod(ctx, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return nil, fmt.Errorf("force-delete pod %s/%s: %w", pod.Namespace, pod.Name, missing(err, "delete", "pods"))
	}
	return nil, nil
}
