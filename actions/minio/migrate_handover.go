package minio

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// awaitServed has no effect: its preflight waits until the highly available MinIO has
// served for long enough.
type awaitServed struct{ *migrator }

func (s awaitServed) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	leads, _, err := s.api.Leads(ctx)
	return actions.Proof{Done: err == nil && leads == journal.MinioServiceHA, Missing: fmt.Sprintf("Service minio leads to %s", leads)}, err
}

func (awaitServed) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

// deleteDeployment is done when there is no Deployment of that UID any more.
type deleteDeployment struct{ *migrator }

// Atomic implements [actions.AtomicStep].
func (deleteDeployment) Atomic() bool { return true }

func (s deleteDeployment) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	shall, err := shallOf(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	single, err := s.api.Single(ctx)
	return actions.Proof{Done: err == nil && single.Deployment != shall.Deployment, Missing: "Deployment minio still exists"}, err
}

func (s deleteDeployment) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	shall, err := shallOf(step.Action)
	if err != nil {
		return nil, err
	}
	defer s.changed()
	return nil, kube.Deleted(s.api.DeleteDeployment(ctx, shall.Deployment))
}

// deleteSingleClaim is done when the claim was asked to end: it stays until the pod is gone.
// One that a Deployment uses again is left alone.
type deleteSingleClaim struct{ *migrator }

// Atomic implements [actions.AtomicStep].
func (deleteSingleClaim) Atomic() bool { return true }

// leftClaim is what becomes of a claim that is not deleted.
type leftClaim struct {
	Left string `json:"left"`
}

func (s deleteSingleClaim) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	shall, err := shallOf(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	claim, exists, err := s.api.SingleClaim(ctx)
	if err != nil || !exists || claim.Ends || claim.UID != shall.Claim {
		return actions.Proof{Done: err == nil}, err
	}
	single, err := s.api.Single(ctx)
	if err != nil || single.Deployment == "" {
		return actions.Proof{Missing: "the claim of the single MinIO still exists"}, err
	}
	outputs, err := json.Marshal(leftClaim{"the claim minio-pv-claim is left alone: there is a Deployment minio again, which uses it"})
	return actions.Proof{Done: true, Outputs: outputs}, err
}

func (s deleteSingleClaim) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	proof, err := s.Prove(ctx, step)
	if err != nil || proof.Done {
		return proof.Outputs, err
	}
	shall, err := shallOf(step.Action)
	if err != nil {
		return nil, err
	}
	return nil, kube.Deleted(s.api.DeleteSingleClaim(ctx, shall.Claim))
}
