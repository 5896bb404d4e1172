// Package envoy replaces an Envoy pod that stays unready.
package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const (
	doesDeletePod    = "delete-pod"
	deletePodTimeout = 30 * time.Second
)

// New returns the action that force-deletes the pod, right after it reads the pod again. The pod's controller creates
// another pod, which EKCO observes too.
func New(api kube.API) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionRestartEnvoy, Noun: "restart", AskedLast: []string{StillUnready}, Expendable: true,
		Plan:       actions.PlanOf(plan),
		Steps:      map[string]actions.StepDef{doesDeletePod: {Step: actions.WithInput(deletePod{api})}},
		Preflights: map[string]actions.Preflight{StillUnready: actions.CheckOf(stillUnready{api}.check)},
		Guards:     func(journal.ActionRecord, journal.PlannedStep) []string { return []string{StillUnready} },
	}
}

func plan(_ context.Context, _ journal.ActionRecord, pod journal.EnvoyPod) (journal.Plan, error) {
	input, err := json.Marshal(pod)
	if err != nil {
		return journal.Plan{}, fmt.Errorf("record pod %s: %w", pod, err)
	}
	return journal.Plan{Facts: input, Steps: []journal.PlannedStep{{
		ID: doesDeletePod + " " + pod.String(), Does: doesDeletePod, Input: input, Domains: actions.NoDomains,
		Preflights: []string{StillUnready}, Timeout: journal.Duration(deletePodTimeout),
	}}}, nil
}

// deletePod force-deletes the pod with the requested UID.
type deletePod struct{ api kube.API }

// Prove implements [actions.StepOf]. A terminating pod counts as done even if a finalizer keeps it, because EKCO can do
// no more.
func (s deletePod) Prove(ctx context.Context, step actions.StepContext, pod journal.EnvoyPod) (actions.Proof, error) {
	live, err := s.api.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Proof{Done: true}, nil
	case err != nil:
		return actions.Proof{}, fmt.Errorf("read pod %s: %w", pod, kube.NamePermission(err, "get", "pods"))
	case live.UID != pod.UID, !live.DeletionTimestamp.IsZero():
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: fmt.Sprintf("pod %s still exists", pod)}, nil
}

func (s deletePod) Do(ctx context.Context, step actions.StepContext, pod journal.EnvoyPod) (json.RawMessage, error) {
	if err := kube.IgnoreNotFound(s.api.ForceDeletePod(ctx, pod.Namespace, pod.Name, pod.UID)); err != nil {
		return nil, fmt.Errorf("force-delete pod %s: %w", pod, kube.NamePermission(err, "delete", "pods"))
	}
	return nil, nil
}
