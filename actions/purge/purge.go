// Package purge permanently removes a lost node from the cluster, and all that belongs to it in Rook, Ceph,
// etcd and kubeadm's configuration.
package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Facts is what a purge captures before it changes anything, and keeps in its plan. Each part of the purge adds
// its own facts, if any.
type Facts struct {
	Node    NodeIdentity  `json:"node"`
	Storage *StorageFacts `json:"storage,omitempty"`
	Kubeadm *KubeadmFacts `json:"kubeadm,omitempty"`
	Etcd    *EtcdFacts    `json:"etcd,omitempty"`
	// StorageLeft is why the purge leaves Rook alone although there may be something. Only a manual purge has
	// it.
	StorageLeft string `json:"storage_left,omitempty"`
}

// NodeIdentity identifies the node. If the Node was already gone when the purge was planned, role and addresses
// are those that EKCO saw last, or empty.
type NodeIdentity struct {
	Name       string           `json:"name"`
	UID        string           `json:"uid"`
	Role       journal.NodeRole `json:"role,omitempty"`
	InternalIP string           `json:"internal_ip,omitempty"`
	Hostname   string           `json:"hostname,omitempty"`
	// Present is set if the Node still existed.
	Present bool `json:"present,omitempty"`
	// ReplacedBy is the UID of the Node that already had the name. Then nothing under the name is captured,
	// since it may belong to that Node.
	ReplacedBy string `json:"replaced_by,omitempty"`
	// HostnameOf is the Node that already had the hostname. Then nothing of Rook and Ceph under it is captured.
	HostnameOf string `json:"hostname_of,omitempty"`
}

// hostname is the value of the label kubernetes.io/hostname.
func (n NodeIdentity) hostname() string {
	if n.Hostname != "" {
		return n.Hostname
	}
	return n.Name
}

// names returns the names that Rook may use for the node.
func (n NodeIdentity) names() []string {
	if n.hostname() == n.Name {
		return []string{n.Name}
	}
	return []string{n.hostname(), n.Name}
}

// mayBePrimary reports whether the node was a primary, or its role is unknown.
func (n NodeIdentity) mayBePrimary() bool { return n.Role != journal.RoleWorker }

// replacement returns the UID of another Node that has the name now, or "".
func (n NodeIdentity) replacement(ctx context.Context, api kube.API) (uid string, err error) {
	live, err := api.Node(ctx, n.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read node %s: %w", n.Name, kube.Lacking(err, "get", "nodes"))
	case live.UID == n.UID:
		return "", nil
	}
	return live.UID, nil
}

// part is one part of a purge. The parts capture their facts, then plan their steps, in the order of [New].
type part interface {
	// name is the part's name in the keys of errors.
	name() string
	// domain is the domain that its steps lock, unless they name others.
	domain() string
	// capture adds to the facts. It changes nothing.
	capture(ctx context.Context, record journal.ActionRecord, facts *Facts) error
	// plan returns the part's steps, and those that undo them.
	plan(record journal.ActionRecord, facts Facts) (journal.Plan, error)
	// gate lists the part's preflights before the first step of all.
	gate(record journal.ActionRecord, facts Facts) []string
	// steps returns the implementations of the part's steps, by their Does.
	steps() map[string]actions.StepDef
	// preflights returns the part's checks, by name.
	preflights() map[string]actions.Preflight
}

// definition is the action that permanently removes a node.
type definition struct{ parts []part }

// Option adds a part to a purge.
type Option func(*parts)

// parts are the parts of a purge, in the order of its plan.
type parts struct{ storage, node, primary part }

func partsOf(api kube.API, options []Option) parts {
	all := parts{node: nodePart{api: api}}
	for _, option := range options {
		option(&all)
	}
	return all
}

// ordered returns the parts that exist.
func (p parts) ordered() []part {
	return slices.DeleteFunc([]part{p.storage, p.node, p.primary}, func(part part) bool { return part == nil })
}

// New returns the action that permanently removes a lost node from the cluster. Its plan has a part for the
// Node object, and the parts of the options. A subject whose UID [journal.IsTraced] has no Node object, and may
// have been a primary.
//
// It never changes a Node with the same name and another UID, nor what belongs to it.
func New(api kube.API, options ...Option) actions.Definition {
	d := definition{parts: partsOf(api, options).ordered()}
	steps := map[string]actions.StepDef{WaitForCancel: {Step: waitForCancel{}, Interruptible: true}} // a cancel ends the wait
	checks := map[string]actions.Preflight{
		nodes.StillGone: nodes.Watch{API: api, Replaced: replacedNodeIsPurged},
		NodeWasSeen:     nodeWasSeen{},
	}
	for _, part := range d.parts {
		maps.Copy(steps, part.steps())
		maps.Copy(checks, part.preflights())
	}
	return actions.Definition{
		Kind: journal.ActionPurgeNode, Noun: "purge", AskedLast: []string{nodes.StillGone}, Needed: []string{doesFindOSDs},
		Plan: d.plan, Steps: steps, Preflights: checks, Guards: guards, Costs: d.costs,
	}
}

// guarded returns the preflights of an irreversible step: first, those that every such step has, and last.
func guarded(first []string, last ...string) []string {
	all := append(append([]string{}, first...), nodes.StillGone)
	return append(append(all, actions.Policy), last...)
}

// replacedNodeIsPurged: the Node to purge no longer exists. A node that EKCO never saw may be the one that has
// the name now, so its purge does not begin.
func replacedNodeIsPurged(record journal.ActionRecord, live kube.Node) actions.Verdict {
	if journal.IsTraced(record.Subject.UID) && !record.PastNoReturn {
		return actions.Abandon(fmt.Sprintf("a node %s has joined (uid %s), and what is left under the name may belong to it", live.Name, live.UID))
	}
	return actions.Pass()
}

// guards makes a purge check the quorum before it deletes a primary's Node, the first step that changes the
// control plane. The Node of a machine that answers stays while one of its OSDs runs, even if that had stopped
// before.
func guards(record journal.ActionRecord, planned journal.PlannedStep) []string {
	if planned.Does != doesDeleteNode {
		return nil
	}
	var guards []string
	if _, stops := record.Plan.Step(doesStopOSDs); stops {
		guards = []string{OSDsDown}
	}
	facts, err := factsOf(record)
	if err != nil {
		return append(guards, EtcdQuorumKept) // it says so
	}
	return append(guards, facts.quorum()...)
}

// plan joins the plans of the parts.
func (d definition) plan(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
	facts, err := d.capture(ctx, record)
	if err != nil {
		return journal.Plan{}, err
	}
	var plan journal.Plan
	var gate []string
	traced := journal.IsTraced(record.Subject.UID)
	if traced {
		gate = []string{NodeWasSeen}
	}
	for _, part := range d.parts {
		own, err := part.plan(record, facts)
		if err != nil {
			return journal.Plan{}, err
		}
		plan.Steps = append(plan.Steps, takingDomain(part.domain(), own.Steps)...)
		plan.Undo = append(plan.Undo, takingDomain(part.domain(), own.Undo)...)
		gate = append(gate, part.gate(record, facts)...)
	}
	if journal.PurgeInputOf(record.Request).Live {
		reversibleFirst(plan.Steps)
	}
	if len(plan.Steps) > 1 || len(gate) > 0 {
		plan.Steps = actions.BehindGate(plan.Steps, guarded(nil, gate...))
	}
	plan.Steps = cancelable(record, plan.Steps)
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return journal.Plan{}, fmt.Errorf("record the facts of node %s: %w", record.Subject.Name, err)
	}
	return plan, nil
}

// takingDomain sets the domain of each step that has none.
func takingDomain(domain string, steps []journal.PlannedStep) []journal.PlannedStep {
	for i := range steps {
		if steps[i].Domains == nil {
			steps[i].Domains = []string{domain}
		}
	}
	return steps
}

// capture captures the node's identity, and then all that belonged to it.
func (d definition) capture(ctx context.Context, record journal.ActionRecord) (facts Facts, err error) {
	for _, part := range d.parts {
		if node, ok := part.(nodePart); ok {
			err = keyed("node", node.capture(ctx, record, &facts))
		}
	}
	for _, part := range d.parts {
		if _, ok := part.(nodePart); !ok && err == nil {
			err = keyed(part.name(), part.capture(ctx, record, &facts))
		}
	}
	return facts, err
}

// factsOf decodes the facts of a purge, also for preflights.
func factsOf(record journal.ActionRecord) (Facts, error) {
	var facts Facts
	if err := json.Unmarshal(record.Plan.Facts, &facts); err != nil {
		return Facts{}, fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	return facts, nil
}
