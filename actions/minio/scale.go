package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// MinioReady requires that all replicas are ready and MinIO is healthy. It passes until one wait for this has failed.
const MinioReady = "MinioReady"

// MinioDataElsewhere prevents the removal of a replica that has needed data.
const MinioDataElsewhere = "MinioDataElsewhere"

const (
	scaleTimeout = 30 * time.Second
	// readyTimeout is how long EKCO waits for the replicas before it holds with the reasons that they report.
	readyTimeout = 2 * time.Minute
)

func scaleDefinition(api minio.API, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionScaleMinio, Noun: "scaling", Expendable: true,
		AskedLast: []string{MinioDataElsewhere},
		Plan:      actions.PlanOf(planScale),
		Steps: map[string]actions.StepDef{
			journal.StepScaleMinio: {Step: actions.WithFacts(scaleStatefulSet{api, changed})},
			journal.StepAwaitMinio: {Step: actions.WithFacts(awaitReady{api})},
		},
		Preflights: map[string]actions.Preflight{MinioStillThere: requireSameStatefulSet(api), MinioDataElsewhere: dataElsewhere(api), MinioReady: actions.CheckOf(ready{api, changed}.check)},
	}
}

// planScale changes the StatefulSet in a separate step. Only that step must block other changes of the storage, because
// each new replica takes a volume. The replicas may never become ready.
func planScale(_ context.Context, record journal.ActionRecord, asked journal.MinioScale) (journal.Plan, error) {
	if asked.Replicas < 1 {
		return journal.Plan{}, fmt.Errorf("scale %s: asked for %d replicas, want at least 1", record.Subject.Name, asked.Replicas)
	}
	return journal.Plan{Steps: []journal.PlannedStep{
		{
			ID: journal.StepScaleMinio, Does: journal.StepScaleMinio, Preflights: []string{MinioStillThere, MinioDataElsewhere},
			Timeout: journal.Duration(scaleTimeout), Domains: []string{journal.DomainStorage},
		},
		{
			ID: journal.StepAwaitMinio, Does: journal.StepAwaitMinio, After: []string{journal.StepScaleMinio},
			Preflights: []string{MinioReady}, Timeout: journal.Duration(readyTimeout), Domains: actions.NoDomains,
		},
	}}, nil
}

// dataElsewhere implements [MinioDataElsewhere]. The data of a removed replica stays on its volume, but the other
// replicas run without it.
func dataElsewhere(api minio.API) actions.Preflight {
	return actions.CheckOf(func(ctx context.Context, _ journal.ActionRecord, want journal.MinioScale) actions.Verdict {
		live, err := api.Read(ctx)
		if err != nil {
			return actions.Hold(err.Error()).About("unread")
		}
		const remedy = "set annotation kurl.sh/desired-scale of StatefulSet ha-minio to %d"
		quorum := journal.MinioQuorum(live.Replicas)
		switch {
		case want.Replicas >= live.Replicas:
			return actions.Pass()
		case want.Replicas < quorum:
			return actions.Hold(fmt.Sprintf("%d of %d replicas are fewer than the %d that MinIO needs to write; "+remedy, want.Replicas, live.Replicas, quorum, live.Replicas)).About("quorum")
		case live.Service != journal.MinioServiceSingle || live.Deployment == "":
			return actions.Hold(fmt.Sprintf("ha-minio may have the only copy of all data, and each removed replica takes its part with it; "+remedy, live.Replicas)).About("serves")
		}
		return actions.Pass()
	})
}

// scaleStatefulSet changes the StatefulSet by one update, which can be repeated without harm.
type scaleStatefulSet struct {
	api     minio.API
	changed func()
}

func (s scaleStatefulSet) Prove(ctx context.Context, step actions.StepContext, want journal.MinioScale) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	outputs, err := changeOutput(live)
	return actions.Proof{
		Done: live.UID == step.Action.Subject.UID && live.Replicas == want.Replicas, Outputs: outputs,
		Missing: fmt.Sprintf("StatefulSet ha-minio specifies %d replicas, not %d", live.Replicas, want.Replicas),
	}, err
}

func (s scaleStatefulSet) Do(ctx context.Context, step actions.StepContext, want journal.MinioScale) (json.RawMessage, error) {
	set, err := s.api.Scale(ctx, step.Action.Subject.UID, want.Replicas)
	if err != nil {
		return nil, err
	}
	s.changed()
	return changeOutput(set)
}

// changeOutput encodes the facts of a change for the machine, which needs them before an observer sees the change.
func changeOutput(facts journal.MinioFacts) (json.RawMessage, error) {
	return json.Marshal(journal.MinioScaled{Generation: facts.Generation, Replicas: facts.Replicas})
}

// awaitReady changes nothing: it waits for the StatefulSet controller and MinIO.
type awaitReady struct {
	api minio.API
}

func (s awaitReady) Prove(ctx context.Context, step actions.StepContext, want journal.MinioScale) (actions.Proof, error) {
	live, lacks, err := s.api.Unready(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	if live.UID != step.Action.Subject.UID || live.Replicas != want.Replicas {
		return actions.Proof{Missing: "another Kubernetes client changed the StatefulSet"}, nil
	}
	return actions.Proof{Done: lacks == "", Missing: lacks}, nil
}

func (awaitReady) Do(context.Context, actions.StepContext, journal.MinioScale) (json.RawMessage, error) {
	return nil, nil
}

// ready is a preflight. It holds the action if pods or servers are not ready after the first wait for them failed.
type ready struct {
	api     minio.API
	changed func()
}

func (r ready) check(ctx context.Context, record journal.ActionRecord, want journal.MinioScale) actions.Verdict {
	live, lacks, err := r.api.Unready(ctx)
	if verdict := judgeStatefulSet(record, live, err); verdict.Kind == actions.VerdictAbandon || err != nil {
		return verdict
	}
	switch {
	case record.Request.DryRun:
		return actions.Pass() // nothing was changed, so no wait is needed
	case live.Replicas != want.Replicas:
		r.changed()
		return actions.Abandon(fmt.Sprintf("another Kubernetes client set its replicas to %d", live.Replicas)).About("reset")
	case lacks != "" && record.Steps[journal.StepAwaitMinio].Failures > 0:
		return actions.Hold(lacks).About("unready")
	}
	return actions.Pass()
}
