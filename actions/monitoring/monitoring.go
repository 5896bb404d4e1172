// Package monitoring gives Prometheus and Alertmanager as many replicas as the number of
// nodes allows.
package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/journal"
)

// MonitoringStillThere is the preflight that the object is the one that was planned for.
const MonitoringStillThere = "MonitoringStillThere"

const setTimeout = 30 * time.Second

// New returns the action that sets the replicas of one object. changed is called when it
// has, so that the change is looked at.
func New(api monitoring.API, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionScaleMonitoring, Noun: "scaling", Expendable: true,
		Plan:       plan,
		Steps:      map[string]actions.Step{journal.StepSetReplicas: setReplicas{api, changed}},
		Preflights: map[string]actions.Preflight{MonitoringStillThere: stillThere(api)},
	}
}

// plan needs nothing that the request does not say.
func plan(_ context.Context, record journal.ActionRecord) (journal.Plan, error) {
	asked, err := journal.InputOf[journal.MonitoringInput](record.Request)
	if err != nil {
		return journal.Plan{}, err
	}
	if asked.Replicas < 1 {
		return journal.Plan{}, fmt.Errorf("scale %s: asked for %d replicas, want at least 1", record.Subject.Name, asked.Replicas)
	}
	facts, err := json.Marshal(asked)
	return journal.Plan{Facts: facts, Steps: []journal.PlannedStep{{
		ID: journal.StepSetReplicas, Does: journal.StepSetReplicas, Preflights: []string{MonitoringStillThere},
		Timeout: journal.Duration(setTimeout), Domains: actions.NoDomains,
	}}}, err
}

func stillThere(api monitoring.API) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, record journal.ActionRecord) actions.Verdict {
		live, err := api.Read(ctx, record.Subject)
		switch {
		case errors.Is(kube.Sentinel(err), kube.ErrNotFound):
			return actions.Abandon("there is no such object any more").About("gone")
		case err != nil:
			return actions.Hold(err.Error()).About("unread")
		case live.UID != record.Subject.UID:
			return actions.Abandon("the object was replaced: its uid is " + live.UID + " now").About("replaced")
		}
		return actions.Pass()
	})
}

// setReplicas is a single patch, which bears being repeated.
type setReplicas struct {
	api     monitoring.API
	changed func()
}

func (s setReplicas) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	var shall journal.MonitoringInput
	if err := step.Facts(&shall); err != nil {
		return actions.Proof{}, err
	}
	live, err := s.api.Read(ctx, step.Action.Subject)
	if err != nil {
		return actions.Proof{}, err
	}
	outputs, err := json.Marshal(live)
	return actions.Proof{
		Done: live.UID == step.Action.Subject.UID && live.Replicas == shall.Replicas, Outputs: outputs,
		Missing: fmt.Sprintf("it has %d replicas, not %d", live.Replicas, shall.Replicas),
	}, err
}

func (s setReplicas) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var shall journal.MonitoringInput
	if err := step.Facts(&shall); err != nil {
		return nil, err
	}
	set, err := s.api.Scale(ctx, step.Action.Subject, shall.Replicas)
	if err != nil {
		return nil, err
	}
	s.changed()
	return json.Marshal(set)
}
