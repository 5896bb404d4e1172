package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// reload has the HAProxy of a node run with what is on the node. The kubelet restarts it for
// another manifest; for another configuration alone it is told to read that again.
type reload struct{ running loadbalancer.Running }

var _ actions.InterruptibleStep = reload{}

// Interruptible implements [actions.InterruptibleStep]: it waits for the kubelet, and for HAProxy.
func (reload) Interruptible() bool { return true }

// look returns what is missing, empty for nothing, and the pod if that is to be told.
func (s reload) look(ctx context.Context, step actions.StepContext) (missing string, tell *loadbalancer.Pod, err error) {
	on, is, err := OnNode(step.Action)
	if err != nil || !is || on.Image == "" {
		return "", nil, err // there is no node, or no manifest
	}
	node := step.Action.Subject.Name
	pod, err := s.running.Pod(ctx, node)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "the kubelet of node " + node + " has made no pod of the manifest", nil, nil
	case err != nil:
		return "", nil, err
	case pod.Image != on.Image || pod.Version != on.Version:
		return fmt.Sprintf("pod %s has image %s and file version %s, its manifest %s and %s", pod.Name, pod.Image, pod.Version, on.Image, on.Version), nil, nil
	case !pod.Runs:
		return fmt.Sprintf("pod %s does not run", pod.Name), nil, nil
	}
	log, err := s.running.Log(ctx, pod)
	if err != nil || loadbalancer.Has(log, on.Backend) {
		return "", nil, err
	}
	return fmt.Sprintf("HAProxy of pod %s has not logged that it runs with backend %s", pod.Name, on.Backend), &pod, nil
}

// Prove implements [actions.Step].
func (s reload) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	missing, _, err := s.look(ctx, step)
	return actions.Proof{Done: err == nil && missing == "", Missing: missing}, err
}

// Do implements [actions.Step]. To be told twice does HAProxy no harm.
func (s reload) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	_, tell, err := s.look(ctx, step)
	if err != nil || tell == nil {
		return nil, err
	}
	return nil, s.running.Reload(ctx, *tell)
}

// reach sees an API server answer through the HAProxy of a node.
type reach struct{ running loadbalancer.Running }

var _ actions.InterruptibleStep = reach{}

// Interruptible implements [actions.InterruptibleStep]: it only looks.
func (reach) Interruptible() bool { return true }

// Prove implements [actions.Step].
func (s reach) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	on, is, err := OnNode(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	var shall journal.LoadBalancerInput
	if err := step.Facts(&shall); err != nil {
		return actions.Proof{}, err
	}
	if !is || on.Image == "" || shall.Address == "" {
		return actions.Proof{Done: true}, nil
	}
	if err := s.running.Reach(ctx, shall.Address); err != nil {
		return actions.Proof{Missing: fmt.Sprintf("no API server answers through HAProxy on node %s: %v", step.Action.Subject.Name, err)}, nil
	}
	return actions.Proof{Done: true}, nil
}

// Do implements [actions.Step].
func (reach) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }
