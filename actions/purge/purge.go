// Package purge permanently removes a lost node from the cluster, with all its data in Rook, Ceph, etcd and kubeadm's
// configuration.
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

// Facts has everything that a purge captures before it changes anything. The plan keeps the facts. Each part of the
// purge adds its own facts.
type Facts struct {
	Node    NodeIdentity  `json:"node"`
	Storage *StorageFacts `json:"storage,omitempty"`
	Kubeadm *KubeadmFacts `json:"kubeadm,omitempty"`
	Etcd    *EtcdFacts    `json:"etcd,omitempty"`
	// StorageLeft is the reason why a manual purge does not touch Rook although Rook may have data of the node.
	StorageLeft string `json:"storage_left,omitempty"`
}

// NodeIdentity identifies the node. If the Node was already gone when EKCO planned the purge, role and addresses are
// the last known ones, or empty.
type NodeIdentity struct {
	Name       string           `json:"name"`
	UID        string           `json:"uid"`
	Role       journal.NodeRole `json:"role,omitempty"`
	InternalIP string           `json:"internal_ip,omitempty"`
	Hostname   string           `json:"hostname,omitempty"`
	// Present is true if the Node still existed.
	Present bool `json:"present,omitempty"`
	// ReplacedBy is the UID of the Node that already had the name. EKCO then captures nothing under the name, because
	// it may belong to that Node.
	ReplacedBy string `json:"replaced_by,omitempty"`
	// HostnameOf is the Node that already had the hostname. EKCO then captures nothing of Rook and Ceph under the
	// hostname.
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

// mayBePrimary reports whether the node was a primary or its role is unknown.
func (n NodeIdentity) mayBePrimary() bool { return n.Role != journal.RoleWorker }

// replacement returns the UID of another Node that has the name now, or "".
func (n NodeIdentity) replacement(ctx context.Context, api kube.API) (uid string, err error) {
	live, err := api.Node(ctx, n.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read node %s: %w", n.Name, kube.NamePermission(err, "get", "nodes"))
	case live.UID == n.UID:
		return "", nil
	}
	return live.UID, nil
}

// part is one part of a purge. The parts capture their facts, and then plan their steps, in the order of
// [parts.ordered].
type part interface {
	// name is the part's name in the keys of errors.
	name() string
	// domain is the domain that the part's steps lock, unless a step names others.
	domain() string
	// capture adds the part's facts. It changes nothing.
	capture(ctx context.Context, record journal.ActionRecord, facts *Facts) error
	// plan returns the part's steps and their undo steps.
	plan(record journal.ActionRecord, facts Facts) (journal.Plan, error)
	// gate lists the part's preflights for the gate, before the first step of the whole purge.
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

// ordered returns the configured parts in the order of the plan.
func (p parts) ordered() []part {
	return slices.DeleteFunc([]part{p.storage, p.node, p.primary}, func(part part) bool { return part == nil })
}

// New returns the action that permanently removes a lost node from the cluster. Its plan has a part for the Node
// object, and the parts of the options. If [journal.IsTraced] is true for the subject's UID, the node has no Node
// object, and may have been a primary.
//
// The action never changes a Node with the same name and another UID, nor objects of that Node.
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

// irreversiblePreflights returns the preflights of an irreversible step: first, then the preflights that every such
// step has, then last.
func irreversiblePreflights(first []string, last ...string) []string {
	all := append(append([]string{}, first...), nodes.StillGone)
	return append(append(all, actions.Policy), last...)
}

// replacedNodeIsPurged returns the verdict if the Node to purge no longer exists and another Node has its name. If EKCO
// never saw the purged node, a person may have meant the present Node, so the purge does not begin.
func replacedNodeIsPurged(record journal.ActionRecord, live kube.Node) actions.Verdict {
	if journal.IsTraced(record.Subject.UID) && !record.PastNoReturn {
		return actions.Abandon(fmt.Sprintf("a node %s has joined (uid %s), and what is left under the name may belong to it", live.Name, live.UID))
	}
	return actions.Pass()
}

// guards makes a purge check the quorum before it deletes a primary's Node, which is the first change of the control
// plane. If the machine answers, the Node also stays while one of its OSDs runs, even if that OSD had stopped before.
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
		return append(guards, EtcdQuorumKept) // the preflight itself reports that
	}
	return append(guards, facts.quorumPreflights()...)
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
		plan.Steps = append(plan.Steps, withDomain(part.domain(), own.Steps)...)
		plan.Undo = append(plan.Undo, withDomain(part.domain(), own.Undo)...)
		gate = append(gate, part.gate(record, facts)...)
	}
	if journal.PurgeInputOf(record.Request).Live {
		reversibleFirst(plan.Steps)
	}
	if len(plan.Steps) > 1 || len(gate) > 0 {
		plan.Steps = actions.BehindGate(plan.Steps, irreversiblePreflights(nil, gate...))
	}
	plan.Steps = withTimeToCancel(record, plan.Steps)
	if plan.Facts, err = json.Marshal(facts); err != nil {
		return journal.Plan{}, fmt.Errorf("record the facts of node %s: %w", record.Subject.Name, err)
	}
	return plan, nil
}

// withDomain sets the domain of each step that has no domain.
func withDomain(domain string, steps []journal.PlannedStep) []journal.PlannedStep {
	for i := range steps {
		if steps[i].Domains == nil {
			steps[i].Domains = []string{domain}
		}
	}
	return steps
}

// capture captures the node's identity, and then the facts of all parts.
func (d definition) capture(ctx context.Context, record journal.ActionRecord) (facts Facts, err error) {
	for _, part := range d.parts {
		if node, ok := part.(nodePart); ok {
			err = withKey("node", node.capture(ctx, record, &facts))
		}
	}
	for _, part := range d.parts {
		if _, ok := part.(nodePart); !ok && err == nil {
			err = withKey(part.name(), part.capture(ctx, record, &facts))
		}
	}
	return facts, err
}

// factsOf decodes the facts of a purge, for steps and preflights.
func factsOf(record journal.ActionRecord) (Facts, error) {
	var facts Facts
	if err := json.Unmarshal(record.Plan.Facts, &facts); err != nil {
		return Facts{}, fmt.Errorf("read the facts of action %s: %w", record.ID, err)
	}
	return facts, nil
}
