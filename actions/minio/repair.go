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

// The preflights of a repair.
const (
	// MinioServiceDisabled requires that the Service is still disabled, and that the Deployment is the planned one.
	MinioServiceDisabled = "MinioServiceDisabled"
	// MinioHealthy requires that one of the replicas reports a healthy MinIO.
	MinioHealthy = "MinioHealthy"
)

const pointTimeout = 30 * time.Second

func repairDefinition(api minio.API, changed func()) actions.Definition {
	return actions.Definition{
		Kind: journal.ActionRepairMinio, Noun: "repair", Expendable: true,
		// Another EKCO may have just disabled the Service for its own switch.
		Exclusive: true,
		AskedLast: []string{MinioServiceDisabled},
		Plan:      actions.PlanOf(planRepair),
		Steps:     map[string]actions.StepDef{journal.StepPointMinio: {Step: actions.WithFacts(pointService{api, changed})}},
		Preflights: map[string]actions.Preflight{
			MinioStillThere: requireSameStatefulSet(api), MinioServiceDisabled: actions.CheckOf(serviceDisabled(api)), MinioHealthy: requireHealthy(api),
		},
	}
}

// planRepair requires a healthy MinIO only if EKCO will select the highly available MinIO. Standalone MinIO is selected
// in any state, because it has the data.
func planRepair(_ context.Context, record journal.ActionRecord, asked journal.MinioRepair) (journal.Plan, error) {
	preflights := []string{MinioStillThere}
	switch asked.To {
	case journal.MinioServiceHA:
		preflights = append(preflights, MinioHealthy)
	case journal.MinioServiceSingle:
	default:
		return journal.Plan{}, fmt.Errorf("repair %s: EKCO cannot point Service minio to %q", record.Subject.Name, asked.To)
	}
	return journal.Plan{Steps: []journal.PlannedStep{{
		ID: journal.StepPointMinio, Does: journal.StepPointMinio, Preflights: append(preflights, MinioServiceDisabled),
		Timeout: journal.Duration(pointTimeout), Domains: []string{journal.DomainStorage},
	}}}, nil
}

// serviceDisabled also passes after the action itself has changed the Service.
func serviceDisabled(api minio.API) func(context.Context, journal.ActionRecord, journal.MinioRepair) actions.Verdict {
	return func(ctx context.Context, record journal.ActionRecord, asked journal.MinioRepair) actions.Verdict {
		live, err := api.Read(ctx)
		if verdict := judgeStatefulSet(record, live, err); verdict.Kind != actions.VerdictPass {
			return verdict
		}
		single := asked.To == journal.MinioServiceSingle
		switch {
		case live.Service == asked.To:
			return actions.Pass()
		case live.Service != journal.MinioServiceDisabled:
			return actions.Abandon(selectsText(live.Service)).About("service")
		case single && live.Deployment == "":
			return actions.Abandon("there is no Deployment minio any more").About("deployment")
		case !single && live.Deployment != "" && live.Deployment != asked.Taken:
			return actions.Abandon("there is a Deployment minio again").About("deployment")
		}
		return actions.Pass()
	}
}

func requireHealthy(api minio.API) actions.Preflight {
	return actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
		if err := api.Healthy(ctx); err != nil {
			return actions.Hold(err.Error()).About("unhealthy")
		}
		return actions.Pass()
	})
}

// pointService changes the Service by one patch, which can be repeated without harm.
type pointService struct {
	api     minio.API
	changed func()
}

func (s pointService) Prove(ctx context.Context, step actions.StepContext, want journal.MinioRepair) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	return actions.Proof{Done: live.Service == want.To, Missing: fmt.Sprintf("Service minio selects %s, not %s", live.Service, want.To)}, nil
}

func (s pointService) Do(ctx context.Context, step actions.StepContext, want journal.MinioRepair) (json.RawMessage, error) {
	if err := s.api.Point(ctx, want.To); err != nil {
		return nil, err
	}
	s.changed()
	return nil, nil
}
