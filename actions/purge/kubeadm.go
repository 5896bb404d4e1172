package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
)

const (
	doesRemoveEndpoint    = "remove-kubeadm-endpoint"
	removeEndpointTimeout = time.Minute
)

// removeEndpoint removes the node from kubeadm's ClusterStatus, and repairs a document that an old EKCO damaged.
type removeEndpoint primaryPart

func (s removeEndpoint) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, edit, kept, err := s.findEdit(ctx, step)
	switch {
	case err != nil:
		return actions.Proof{}, err
	case kept != "":
		return actions.Proof{Done: true, Outputs: leftOutput(kept)}, nil
	case !edit.Changed():
		return actions.Proof{Done: true}, nil
	}
	return actions.Proof{Missing: "the ClusterStatus in kube-system/kubeadm-config still lists the node, or is malformed"}, nil
}

func (s removeEndpoint) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	config, edit, kept, err := s.findEdit(ctx, step)
	if err != nil || kept != "" || !edit.Changed() {
		return nil, err
	}
	if _, err := s.plane.Kubeadm.WriteClusterStatus(ctx, edit.Text, config.Version); err != nil {
		return nil, fmt.Errorf("write the ClusterStatus of kube-system/kubeadm-config: %w", kube.NamePermission(err, "update", "configmaps in kube-system"))
	}
	return nil, nil
}

// findEdit reads the document and returns the needed edit. kept is the reason if no edit is made.
func (s removeEndpoint) findEdit(ctx context.Context, step actions.StepContext) (config kube.KubeadmConfig, edit kubeadm.Edit, kept string, err error) {
	facts, err := factsOf(step.Action)
	if err != nil {
		return config, edit, "", err
	}
	replacement, err := facts.Node.replacement(ctx, s.api)
	if err != nil {
		return config, edit, "", err
	}
	if replacement != "" {
		return config, edit, "node " + facts.Node.Name + " has been replaced; its endpoint belongs to the new node", nil
	}
	config, err = s.plane.Kubeadm.KubeadmConfig(ctx)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return config, edit, "", nil
	case err != nil:
		return config, edit, "", fmt.Errorf("read kube-system/kubeadm-config: %w", kube.NamePermission(err, "get", "configmaps in kube-system"))
	}
	edit, err = kubeadm.RemoveEndpoint(config.ClusterStatus, facts.Node.Name)
	return config, edit, "", err
}
