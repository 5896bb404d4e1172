package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// reload makes HAProxy run with the files on its node. If the manifest changed, the kubelet restarts HAProxy; if only
// the configuration changed, EKCO makes HAProxy reload it.
type reload struct{ running loadbalancer.Running }

// haproxyState is the state of the HAProxy of a node.
type haproxyState struct {
	// missing is the reason why HAProxy does not run with the files, or "".
	missing string
	// needsReload is true if HAProxy runs but must reload its configuration.
	needsReload bool
	pod         loadbalancer.Pod
}

// readState checks the HAProxy of the action's node.
func (s reload) readState(ctx context.Context, step actions.StepContext) (haproxyState, error) {
	node := step.Action.Subject.Name
	on, is, err := OnNode(step.Action, node)
	if err != nil || !is || on.Image == "" {
		return haproxyState{}, err // the node is gone, or has no manifest
	}
	return readHAProxy(ctx, s.running, node, on)
}

// readHAProxy checks whether HAProxy on a node runs with the files that EKCO wrote there.
func readHAProxy(ctx context.Context, running loadbalancer.Running, node string, on journal.LoadBalancerOnNode) (haproxyState, error) {
	pod, err := running.Pod(ctx, node)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return haproxyState{missing: "the kubelet of node " + node + " has created no pod for the manifest"}, nil
	case err != nil:
		return haproxyState{}, err
	}
	if lacks := pod.Lacks(on); lacks != "" {
		return haproxyState{missing: lacks}, nil
	}
	log, err := running.Log(ctx, pod)
	if err != nil || loadbalancer.RunsWith(log, on.Backend) {
		return haproxyState{pod: pod}, err
	}
	return haproxyState{missing: fmt.Sprintf("HAProxy of pod %s has not logged that it runs with backend %s", pod.Name, on.Backend), needsReload: true, pod: pod}, nil
}

func (s reload) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	saw, err := s.readState(ctx, step)
	if err != nil || saw.missing != "" {
		return actions.Proof{Missing: saw.missing}, err
	}
	outputs, err := json.Marshal(journal.LoadBalancerRuns{Started: saw.pod.Started})
	return actions.Proof{Done: true, Outputs: outputs}, err
}

// Do implements [actions.Step]. A second reload does no harm.
func (s reload) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	saw, err := s.readState(ctx, step)
	if err != nil || !saw.needsReload {
		return nil, err
	}
	return nil, s.running.Reload(ctx, saw.pod)
}

// verify implements [hosttask.Work.Verify]. It makes HAProxy run with a new configuration, and waits until an API
// server answers through HAProxy.
func (p Dependencies) verify(ctx context.Context, step actions.StepContext, node string, result json.RawMessage) error {
	var on journal.LoadBalancerOnNode
	if err := json.Unmarshal(result, &on); err != nil {
		return err
	}
	address, err := addressOf(step.Action, node)
	if err != nil || on.Image == "" { // without a manifest, HAProxy does not run
		return err
	}
	// In the last tenth of the trial, EKCO sets the annotation and the task reads it.
	ctx, cancel := context.WithTimeout(ctx, p.Trial*9/10)
	defer cancel()
	var reloaded time.Time
	_, err = actions.Await(ctx, func() <-chan struct{} { return nil }, func(ctx context.Context) (actions.Proof, error) {
		saw, err := readHAProxy(ctx, p.Running, node, on)
		if err == nil && saw.needsReload && time.Since(reloaded) > reloadTimeout {
			reloaded, err = time.Now(), p.Running.Reload(ctx, saw.pod)
		}
		if err != nil {
			saw.missing = err.Error()
		}
		if saw.missing == "" && address != "" {
			_, saw.missing = answerThrough(ctx, p.Running, node, address)
		}
		return actions.Proof{Done: saw.missing == "", Missing: saw.missing}, nil
	})
	return err
}

// addressOf returns the address of the action's node if it has this name, or "".
func addressOf(record journal.ActionRecord, node string) (string, error) {
	if record.Kind != journal.ActionChangeLoadBalancer {
		wanted, err := journal.InputOf[journal.LoadBalancerInput](record.Request)
		return wanted.Address, err
	}
	for _, planned := range record.Plan.Steps {
		if planned.ID == journal.StepServeLoadBalancer+" "+node {
			var on journal.KubeconfigsNode
			err := json.Unmarshal(planned.Input, &on)
			return on.Address, err
		}
	}
	return "", nil
}

// reach verifies that an API server answers through the HAProxy of a node.
type reach struct {
	running loadbalancer.Running
	// restarted is called when a restarted HAProxy serves.
	restarted func()
}

func (s reach) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	on, is, err := OnNode(step.Action, step.Action.Subject.Name)
	if err != nil {
		return actions.Proof{}, err
	}
	var wanted journal.LoadBalancerInput
	if err := step.Facts(&wanted); err != nil {
		return actions.Proof{}, err
	}
	if !is || on.Image == "" || wanted.Address == "" {
		return actions.Proof{Done: true}, nil
	}
	status, missing := answerThrough(ctx, s.running, step.Action.Subject.Name, wanted.Address)
	if missing != "" {
		return actions.Proof{Missing: missing}, nil
	}
	if step.Action.Kind == journal.ActionRestartLoadBalancer {
		s.restarted()
	}
	outputs, err := json.Marshal(journal.LoadBalancerReached{Status: status})
	return actions.Proof{Done: true, Outputs: outputs}, err
}

// answerThrough returns the HTTP status of an API server's answer through HAProxy on a node. missing is the reason if
// no API server answers.
func answerThrough(ctx context.Context, running loadbalancer.Running, node, address string) (status int, missing string) {
	status, err := running.Reach(ctx, address)
	if err != nil {
		return 0, fmt.Sprintf("no API server answers through HAProxy on node %s: %v", node, err)
	}
	return status, ""
}

func (reach) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }
