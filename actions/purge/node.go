package purge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const (
	doesDeleteNode    = "delete-node"
	deleteNodeTimeout = time.Minute
)

// nodePart is the part of a purge for the Node object.
type nodePart struct {
	api kube.API
	// residents is nil if the purge does not report the node's pods.
	residents Residents
}

func (p nodePart) capture(ctx context.Context, record journal.ActionRecord, facts *Facts) error {
	facts.Node = NodeIdentity{Name: record.Subject.Name, UID: record.Subject.UID}
	if known := journal.PurgeInputOf(record.Request).Node; known != nil {
		facts.Node.remember(*known)
	}
	live, err := p.api.Node(ctx, record.Subject.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read node %s: %w", record.Subject.Name, kube.NamePermission(err, "get", "nodes"))
	case live.UID != record.Subject.UID:
		facts.Node.ReplacedBy = live.UID
		return nil
	}
	facts.Node.Present = true
	facts.Node.remember(live.Facts)
	return nil
}

func (n *NodeIdentity) remember(facts journal.NodeFacts) {
	n.Role, n.InternalIP, n.Hostname = facts.Role, facts.InternalIP, facts.Hostname
}

func (nodePart) plan(_ journal.ActionRecord, facts Facts) (journal.Plan, error) {
	return journal.Plan{Steps: []journal.PlannedStep{{
		ID: doesDeleteNode, Does: doesDeleteNode, Preflights: irreversiblePreflights(nil, facts.quorumPreflights()...),
		Irreversible: true, Timeout: journal.Duration(deleteNodeTimeout),
	}}}, nil
}

func (nodePart) name() string   { return "node" }
func (nodePart) domain() string { return journal.DomainNodes }

func (nodePart) gate(journal.ActionRecord, Facts) []string { return nil }
func (nodePart) preflights() map[string]actions.Preflight  { return nil }

func (p nodePart) steps() map[string]actions.StepDef {
	return map[string]actions.StepDef{doesDeleteNode: {Step: actions.WithFacts(deleteNode{p.api}), Atomic: true}} // if the Node exists, it was not deleted
}

// leftUnchecked returns an output that names what the purge does not touch because another Node already had the name
// when EKCO planned it. It returns nothing if the name was free.
func (n NodeIdentity) leftUnchecked() json.RawMessage {
	what := "OSDs with their Deployments, the CRUSH host, the entry in the CephCluster"
	if n.ReplacedBy != "" && n.mayBePrimary() {
		what += ", the etcd member, the endpoint in kubeadm-config"
	}
	var whose string
	switch {
	case n.ReplacedBy != "":
		whose = fmt.Sprintf("another Node had the name %s before the purge was planned (uid %s), so nothing under the name was removed", n.Name, n.ReplacedBy)
	case n.HostnameOf != "":
		whose = fmt.Sprintf("%s had the hostname %s before the purge was planned, so nothing under it was removed", n.HostnameOf, n.hostname())
	default:
		return nil
	}
	return leftOutput(whose + ": " + what + "; check whether any belongs to the old machine, and remove it by hand")
}

// deleteNode deletes the Node with the captured UID.
type deleteNode struct{ api kube.API }

func (s deleteNode) Prove(ctx context.Context, step actions.StepContext, facts Facts) (actions.Proof, error) {
	live, err := s.api.Node(ctx, facts.Node.Name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return actions.Proof{Done: true, Outputs: facts.Node.leftUnchecked()}, nil
	case err != nil:
		return actions.Proof{}, fmt.Errorf("read node %s: %w", facts.Node.Name, kube.NamePermission(err, "get", "nodes"))
	case live.UID != facts.Node.UID:
		return actions.Proof{Done: true, Outputs: facts.Node.leftUnchecked()}, nil
	}
	if !live.Deleting {
		live.Finalizers = nil
	}
	return actions.Proof{Missing: kube.StillExists("node", "", live.Name, live.Finalizers), NeedsOthers: len(live.Finalizers) > 0}, nil
}

func (s deleteNode) Do(ctx context.Context, step actions.StepContext, facts Facts) (json.RawMessage, error) {
	if facts.Node.UID == "" || journal.IsTraced(facts.Node.UID) {
		// Without its UID, EKCO cannot know which Node the person meant.
		return nil, nil
	}
	slow := time.AfterFunc(deletionIsSlow, func() { step.WaitsForOthers(fmt.Sprintf(webhookHolds, facts.Node.Name, deletionIsSlow)) })
	defer slow.Stop()
	if err := kube.IgnoreNotFound(s.api.DeleteNode(ctx, facts.Node.Name, facts.Node.UID)); err != nil {
		return nil, fmt.Errorf("delete node %s: %w%s", facts.Node.Name, kube.NamePermission(err, "delete", "nodes"), webhookHint(err))
	}
	return nil, nil
}

// deletionIsSlow is how long the API server may take for a deletion before EKCO reports the wait.
const deletionIsSlow = 3 * time.Second

const (
	seeWebhooks  = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
	webhookHolds = "the API server has not answered the deletion of node %s for %s; a webhook may hold it: " + seeWebhooks
)

// webhookHint returns a text to add to an error, with the command that lists webhooks, if a webhook refused the
// request.
func webhookHint(err error) string {
	if strings.Contains(err.Error(), "webhook") {
		return "; look at it: " + seeWebhooks
	}
	return ""
}
