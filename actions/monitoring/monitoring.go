// Package monitoring scales Prometheus and Alertmanager with the number of nodes.
package monitoring

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// MonitoringStillThere requires that the object is the planned one, and that the present number of nodes still requires
// this number of replicas, because an action may have been held for days.
const MonitoringStillThere = "MonitoringStillThere"

const setTimeout = 30 * time.Second

// Nodes lists all nodes without a cache.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Replicas returns how many replicas an object must have for this number of nodes.
type Replicas func(of journal.Subject, nodes int) int

// New returns the action that sets the replicas of one object. EKCO calls changed after a change, to trigger a new
// read.
func New(objects kube.Objects, nodes Nodes, replicas Replicas, changed func()) actions.Definition {
	set := object.Set[journal.MonitoringInput, journal.MonitoringFacts]{
		Object: Object(objects), Changed: changed,
		MissingPart: func(_ journal.Subject, asked journal.MonitoringInput, live journal.MonitoringFacts) string {
			return missingReason(asked.Replicas, live)
		},
		Apply: func(ctx context.Context, of journal.Subject, asked journal.MonitoringInput) (journal.MonitoringFacts, error) {
			return scale(ctx, objects, of, asked.Replicas)
		},
	}
	return actions.Definition{
		Kind: journal.ActionScaleMonitoring, Noun: "scaling", Expendable: true,
		Plan:       actions.PlanOf(plan),
		Steps:      map[string]actions.StepDef{journal.StepSetReplicas: {Step: actions.WithFacts(set)}},
		Preflights: map[string]actions.Preflight{MonitoringStillThere: actions.CheckOf(stillThere{set.Object, nodes, replicas}.check)},
	}
}

// plan plans the step from the request alone. It reads nothing.
func plan(_ context.Context, record journal.ActionRecord, asked journal.MonitoringInput) (journal.Plan, error) {
	if asked.Replicas < 1 {
		return journal.Plan{}, fmt.Errorf("scale %s: asked for %d replicas, want at least 1", record.Subject.Name, asked.Replicas)
	}
	return journal.Plan{Steps: []journal.PlannedStep{{
		ID: journal.StepSetReplicas, Does: journal.StepSetReplicas, Preflights: []string{MonitoringStillThere},
		Timeout: journal.Duration(setTimeout), Domains: actions.NoDomains,
	}}}, nil
}

type stillThere struct {
	object.Object[journal.MonitoringFacts]
	nodes    Nodes
	replicas Replicas
}

// check also compares the request with the present number of nodes.
func (p stillThere) check(ctx context.Context, record journal.ActionRecord, asked journal.MonitoringInput) actions.Verdict {
	if verdict := p.Check(ctx, record); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	nodes, err := p.nodes.ListNodes(ctx)
	if err != nil {
		return actions.Hold("cannot tell how many nodes there are: " + err.Error()).About("nodes unread")
	}
	if wanted := p.replicas(record.Subject, len(nodes)); wanted != asked.Replicas {
		return actions.Abandon(fmt.Sprintf("there are %s now, so it should have %s, not %d",
			words.Count(len(nodes), "node"), words.Count(wanted, "replica"), asked.Replicas)).About("nodes")
	}
	return actions.Pass()
}
