// Package rook changes Rook's custom resources: the nodes that Ceph may use, the number of copies, and the number of
// daemons. Each action makes one patch of one object, so that the patch is applied completely or not at all.
package rook

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

const changeTimeout = 30 * time.Second

// Nodes lists the nodes with the configured label, without a cache.
type Nodes interface {
	ListNodes(ctx context.Context) ([]kube.Node, error)
}

// Ceph reads and changes Ceph without a cache.
type Ceph interface {
	Tree(ctx context.Context) (ceph.Tree, error)
	Pools(ctx context.Context) ([]ceph.Pool, error)
	PGs(ctx context.Context) ([]ceph.PG, error)
	Health(ctx context.Context) (ceph.Health, error)
	Room(ctx context.Context) (ceph.Room, error)
	Version(ctx context.Context) (ceph.Version, error)
	ceph.Settings
}

// Dependencies has the dependencies of the actions. All fields must be set.
type Dependencies struct {
	Rook  rook.Resources
	Ceph  Ceph
	Nodes Nodes
	// IsLowSpaceCheck reports whether a code of Ceph's health check means that space is low or used up.
	IsLowSpaceCheck func(code string) bool
	// Removed reports whether Rook was removed with its namespace, so that Ceph never answers again. A missing
	// CephCluster alone is not enough, because it may be created again for the same Ceph.
	Removed func(ctx context.Context) bool
	// Changed is called after a change, to trigger a new read.
	Changed func()
}

// New returns the actions.
func New(parts Dependencies) []actions.Definition {
	return []actions.Definition{
		parts.changeDefinition(journal.ActionAddStorageNodes, "change of the storage nodes"),
		parts.changeDefinition(journal.ActionRaiseCopies, "change of the copies"),
		parts.changeDefinition(journal.ActionAddCephDaemons, "change of the daemons"),
		parts.setPoolsDefinition(),
		parts.lowerDefinition(),
	}
}

// changeDefinition returns an action that makes a [journal.RookChange].
func (p Dependencies) changeDefinition(kind journal.ActionKind, noun string) actions.Definition {
	return actions.Definition{
		Kind: kind, Noun: noun, Expendable: true,
		Plan:       actions.PlanOf(plan),
		Steps:      map[string]actions.StepDef{journal.StepChangeRook: {Step: p.step()}},
		Preflights: p.preflights(),
	}
}

// plan plans the step from the request alone. It reads nothing.
func plan(_ context.Context, record journal.ActionRecord, change journal.RookChange) (journal.Plan, error) {
	if len(change.Nodes) == 0 && len(change.Numbers) == 0 {
		return journal.Plan{}, fmt.Errorf("plan to change %s %s: the request has no change", record.Subject.Kind, record.Subject.Name)
	}
	return journal.Plan{Steps: []journal.PlannedStep{{
		ID: journal.StepChangeRook, Does: journal.StepChangeRook, Preflights: preflightsFor(record.Subject, change),
		Timeout: journal.Duration(changeTimeout), Domains: []string{journal.DomainStorage},
	}}}, nil
}

func (p Dependencies) object() object.Object[journal.RookFacts] {
	return object.Object[journal.RookFacts]{
		Noun: "object", Read: p.Rook.ReadResource, UID: func(facts journal.RookFacts) string { return facts.UID },
	}
}

// step returns the step, which makes a single patch.
func (p Dependencies) step() actions.Step {
	return actions.WithFacts(object.Set[journal.RookChange, journal.RookFacts]{
		Object: p.object(), Changed: p.Changed, Apply: p.Rook.ChangeResource,
		MissingPart: func(_ journal.Subject, change journal.RookChange, live journal.RookFacts) string {
			return change.Lacks(live)
		},
	})
}
