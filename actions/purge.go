package actions

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// PurgeFacts is what a purge captures before anything is touched, and keeps in
// its plan. Each part of the purge adds its own.
type PurgeFacts struct {
	Node NodeIdentity `json:"node"`
}

// NodeIdentity is who the node was. Role and addresses are empty when the Node
// was already gone as the purge was planned.
type NodeIdentity struct {
	Name       string           `json:"name"`
	UID        string           `json:"uid"`
	Role       journal.NodeRole `json:"role,omitempty"`
	InternalIP string           `json:"internal_ip,omitempty"`
	Hostname   string           `json:"hostname,omitempty"`
	// Present is set when the Node still existed.
	Present bool `json:"present,omitempty"`
}

// purgePart is one concern of a purge. The parts capture their facts, then add
// their steps, in the order of the list in [NewPurgeNode].
type purgePart interface {
	// capture adds to the facts. It changes nothing.
	capture(ctx context.Context, record journal.ActionRecord, facts *PurgeFacts) error
	// plan adds the part's steps to those of the parts before it.
	plan(facts PurgeFacts, before []journal.PlannedStep) ([]journal.PlannedStep, error)
	// steps returns the code of the part's steps, by what they do.
	steps() map[string]Step
}

// purgeNode removes a node for good.
type purgeNode struct {
	parts      []purgePart
	preflights map[string]Preflight
	steps      map[string]Step
}

// NewPurgeNode returns the kind that removes a lost node from the cluster. Its
// plan is assembled from parts; at present there is one, the Node object.
//
// A Node of the same name and another UID is never touched: the purge of the
// old one then has nothing left to do. The preflights in [PurgePolicy] are not
// of this package; the caller gives them to [Config].
func NewPurgeNode(api kube.API) Kind {
	kind := purgeNode{
		parts:      []purgePart{nodePart{api}},
		preflights: map[string]Preflight{NodeStillGone: nodeStillGone{api: api, replaced: replacedNodeIsPurged}},
		steps:      make(map[string]Step),
	}
	for _, part := range kind.parts {
		for does, step := range part.steps() {
			kind.steps[does] = step
		}
	}
	return kind
}

// PurgePolicy lists the preflights by which policy judges a purge.
func PurgePolicy() []string {
	return []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"}
}

// replacedNodeIsPurged: the Node that was to be purged no longer exists.
func replacedNodeIsPurged(kube.Node) Verdict { return Pass() }

// Plan implements [Kind].
func (k purgeNode) Plan(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
	var facts PurgeFacts
	for _, part := range k.parts {
		if err := part.capture(ctx, record, &facts); err != nil {
			return journal.Plan{}, err
		}
	}
	var plan journal.Plan
	for _, part := range k.parts {
		steps, err := part.plan(facts, plan.Steps)
		if err != nil {
			return journal.Plan{}, err
		}
		plan.Steps = append(plan.Steps, steps...)
	}
	var err error
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return journal.Plan{}, fmt.Errorf("write down the facts of node %s: %w", record.Subject.Name, err)
	}
	return plan, nil
}

// Step implements [Kind].
func (k purgeNode) Step(does string) (Step, bool) { s, ok := k.steps[does]; return s, ok }

// Preflights implements [Kind].
func (k purgeNode) Preflights() map[string]Preflight { return k.preflights }
