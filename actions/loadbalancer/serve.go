package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
)

// serve makes HAProxy run with the files that were written to its node, and verifies that an API server answers through
// HAProxy. After serveTries failures it records the failure as its outcome.
type serve struct{ running loadbalancer.Running }

// readState returns the state of HAProxy, and the outcome of the step that wrote the files.
func (s serve) readState(ctx context.Context, step actions.StepContext) (saw haproxyState, outcome hosttask.Outcome, err error) {
	var node journal.KubeconfigsNode
	if err := step.Input(&node); err != nil {
		return saw, outcome, err
	}
	outcome, _, err = hosttask.Work{Does: journal.StepWriteLoadBalancer}.OutcomeOf(step.Action, node.Name)
	if err != nil || outcome.Missing != "" || outcome.Left != "" {
		return saw, outcome, err
	}
	on, _, err := OnNode(step.Action, node.Name)
	if err != nil {
		return saw, outcome, err
	}
	if saw, err = readHAProxy(ctx, s.running, node.Name, on); err == nil && saw.missing == "" && node.Address != "" {
		_, saw.missing = answerThrough(ctx, s.running, node.Name, node.Address)
	}
	return saw, outcome, err
}

func (s serve) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	saw, outcome, err := s.readState(ctx, step)
	if err == nil && saw.missing != "" {
		err = errors.New(saw.missing)
	}
	if err != nil && step.Action.Steps[step.Planned.ID].Failures < serveTries {
		return actions.Proof{Missing: err.Error()}, nil
	}
	if err != nil {
		outcome.Missing = err.Error()
	}
	return s.outcome(step, hosttask.Outcome{Missing: outcome.Missing, Left: outcome.Left})
}

// outcome returns a proof with the outcome. For an excluded node it also reports that its load balancer does not serve,
// because no later step reports that.
func (serve) outcome(step actions.StepContext, outcome hosttask.Outcome) (actions.Proof, error) {
	var facts journal.KubeconfigsFacts
	if err := step.Facts(&facts); err != nil {
		return actions.Proof{}, err
	}
	node := strings.TrimPrefix(step.Planned.ID, journal.StepServeLoadBalancer+" ")
	if outcome.Missing != "" && slices.Contains(facts.Exclude, node) {
		outcome.Left = actions.LeftBecause("the load balancer of node "+node, outcome.Missing)
	}
	outputs, err := json.Marshal(outcome)
	return actions.Proof{Done: true, Outputs: outputs}, err
}

func (s serve) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	saw, _, err := s.readState(ctx, step)
	if err != nil || !saw.needsReload {
		return nil, err
	}
	return nil, s.running.Reload(ctx, saw.pod)
}

// allServe has no effect. It is done when the steps before it are done.
type allServe struct{ actions.NoEffect }

func (allServe) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: true}, nil
}
