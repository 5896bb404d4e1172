// Package clear deletes the pods of a lost node, so that their controllers can start other pods on other nodes.
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

// New returns the action that force-deletes the requested pods of a lost node. Each pod has its own step, so a pod that
// cannot be deleted does not stop the others. Before each batch the action reads the Node again, and stops if the node
// answers or another Node has its name. Pods that begin to terminate later belong to another action.
func New(api kube.API) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionClearNode, Noun: "clearing", AskedLast: []string{nodes.StillGone}, Expendable: true,
		Plan:       plan,
		Steps:      map[string]actions.StepDef{doesDeletePod: {Step: actions.WithInput(deletePod{api})}},
		Preflights: map[string]actions.Preflight{nodes.StillGone: nodes.Watch{API: api, Replaced: replacedNodeRunsPods}},
	}
}

// replacedNodeRunsPods abandons the action, because the new Node's kubelet may run or end the pods.
func replacedNodeRunsPods(_ journal.ActionRecord, live kube.Node) actions.Verdict {
	return actions.Abandon(fmt.Sprintf("node %s was replaced: its uid is %s now", live.Name, live.UID))
}

// plan adds one step for each requested pod.
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

// deletePod force-deletes the pod with the requested UID.
type deletePod struct{ api kube.API }

func (s deletePod) Prove(ctx context.Context, step actions.StepContext, pod journal.PodRef) (actions.Proof, error) {
	live, err := s.api.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Proof{Done: true}, nil
	case err != nil:
		return actions.Proof{}, fmt.Errorf("read pod %s/%s: %w", pod.Namespace, pod.Name, kube.NamePermission(err, "get", "pods"))
	case live.UID != pod.UID:
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: kube.StillExists("pod", pod.Namespace, pod.Name, live.Finalizers), NeedsOthers: len(live.Finalizers) > 0}, nil
}

func (s deletePod) Do(ctx context.Context, step actions.StepContext, pod journal.PodRef) (json.RawMessage, error) {
	if err := kube.IgnoreNotFound(s.api.ForceDeletePod(ctx, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return nil, fmt.Errorf("force-delete pod %s/%s: %w", pod.Namespace, pod.Name, kube.NamePermission(err, "delete", "pods"))
	}
	return nil, nil
}
