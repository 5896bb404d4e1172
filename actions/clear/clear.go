// Package clear frees the pods of a lost node, so that their controllers can start
// others elsewhere.
package clear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const (
	doesDeletePod    = "delete-pod"
	deletePodTimeout = 30 * time.Second
)

// New returns the action that force-deletes the requested pods of a lost node, each in its own step, so that a
// pod that cannot be deleted does not stop the others. Before each batch it reads the Node live: if the node
// answers again, or another Node has its name, it deletes no more pods. Pods that start terminating later are
// part of another action.
func New(api kube.API) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionClearNode, Noun: "clearing", AskedLast: []string{nodes.StillGone}, Expendable: true,
		Plan:       plan,
		Steps:      map[string]actions.StepDef{doesDeletePod: {Step: actions.WithInput(deletePod{api})}},
		Preflights: map[string]actions.Preflight{nodes.StillGone: nodes.Watch{API: api, Replaced: replacedNodeRunsPods}},
	}
}

// replacedNodeRunsPods: the new Node's kubelet may run or end the pods.
func replacedNodeRunsPods(_ journal.ActionRecord, live kube.Node) actions.Verdict {
	return actions.Abandon(fmt.Sprintf("node %s was replaced: its uid is %s now", live.Name, live.UID))
}

// plan has a step for each pod that was requested.
func plan(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	pods := journal.ClearInputOf(record.Request).Pods
	made := journal.Plan{Steps: make([]journal.PlannedStep, 0, len(pods))}
	seen := make(map[string]bool, len(pods))
	for _, pod := range pods {
		input, err := json.Marshal(pod)
		if err != nil {
			return journal.Plan{}, fmt.Errorf("record pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		id := "delete-pod " + pod.Namespace + "/" + pod.Name
		if seen[id] {
			id += " " + pod.UID
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		made.Steps = append(made.Steps, journal.PlannedStep{
			ID: id, Does: doesDeletePod, Input: input,
			Preflights: []string{nodes.StillGone}, Timeout: journal.Duration(deletePodTimeout),
		})
	}
	return made, nil
}

// deletePod force-deletes the pod of one UID.
type deletePod struct{ api kube.API }

// Prove implements [actions.Step].
func (s deletePod) Prove(ctx context.Context, step actions.StepContext, pod journal.PodRef) (actions.Proof, error) {
	live, err := s.api.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Proof{Done: true}, nil
	case err != nil:
		return actions.Proof{}, fmt.Errorf("read pod %s/%s: %w", pod.Namespace, pod.Name, kube.Lacking(err, "get", "pods"))
	case live.UID != pod.UID:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: fmt.Sprintf("pod %s/%s still exists; look for finalizers on it: kubectl -n %s get pod %s -o jsonpath={.metadata.finalizers}",
		pod.Namespace, pod.Name, pod.Namespace, pod.Name)}, nil
}

// Do implements [actions.Step].
func (s deletePod) Do(ctx context.Context, step actions.StepContext, pod journal.PodRef) (json.RawMessage, error) {
	if err := kube.Deleted(s.api.ForceDeletePod(ctx, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return nil, fmt.Errorf("force-delete pod %s/%s: %w", pod.Namespace, pod.Name, kube.Lacking(err, "delete", "pods"))
	}
	return nil, nil
}
