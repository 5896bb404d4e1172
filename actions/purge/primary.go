package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

// Kubeadm reads and writes kubeadm's data in the cluster. [kube.Client] implements it.
type Kubeadm interface {
	// KubeadmConfig returns ErrNotFound if the ConfigMap does not exist.
	KubeadmConfig(ctx context.Context) (kube.KubeadmConfig, error)
	// WriteClusterStatus returns ErrConflict if the ConfigMap no longer has this version.
	WriteClusterStatus(ctx context.Context, clusterStatus, version string) (string, error)
	APIServerPods(ctx context.Context) ([]kube.APIServerPod, error)
}

// ControlPlane gives access to kubeadm's data and etcd.
type ControlPlane struct {
	Kubeadm Kubeadm
	// Etcd connects to the etcd members at the endpoints.
	Etcd etcd.Dial
}

// WithControlPlane makes a purge remove the etcd member and the kubeadm endpoint of a primary.
func WithControlPlane(plane ControlPlane) Option {
	return func(parts *parts) {
		api := parts.node.(nodePart).api
		parts.primary = primaryPart{api: api, plane: plane}
	}
}

// KubeadmFacts has kubeadm's data about the node.
type KubeadmFacts struct {
	// Endpoint is the address of the node's API server, nil if unknown.
	Endpoint *kubeadm.Endpoint `json:"endpoint,omitempty"`
	// Edit is true if the ClusterStatus lists the node or is malformed, or if EKCO cannot read it.
	Edit bool `json:"edit,omitempty"`
}

// EtcdFacts has etcd's data about the node.
type EtcdFacts struct {
	// Member is the node's member, nil if the node has no member.
	Member *etcd.Member `json:"member,omitempty"`
	// Endpoints are client URLs of the members that remain.
	Endpoints []string `json:"endpoints,omitempty"`
	// Problem is the reason why EKCO removes no member although one may belong to the node.
	Problem string `json:"problem,omitempty"`
	// Unasked is true if the problem is that EKCO knows no endpoint of etcd.
	Unasked bool `json:"unasked,omitempty"`
}

// primaryPart is the part of a purge for a primary's control plane.
type primaryPart struct {
	api   kube.API
	plane ControlPlane
}

// errNoPrimaries means that kubeadm did not create the cluster, so EKCO knows no endpoint of etcd.
var errNoPrimaries = errors.New("kubeadm did not create this cluster, so EKCO knows no address of etcd")

func (p primaryPart) capture(ctx context.Context, record journal.ActionRecord, facts *Facts) error {
	if err := p.captureWithEtcd(ctx, record, facts); !errors.Is(err, errNoPrimaries) {
		return err
	}
	return nil
}

// captureWithEtcd captures the facts like capture, but returns errNoPrimaries if it could not ask etcd.
func (p primaryPart) captureWithEtcd(ctx context.Context, record journal.ActionRecord, facts *Facts) error {
	if !facts.Node.mayBePrimary() {
		return nil
	}
	replacement, err := facts.Node.replacement(ctx, p.api)
	if err != nil || replacement != "" {
		// Everything under the name now belongs to the new node.
		facts.Node.ReplacedBy = replacement
		return err
	}
	plane, err := p.readControlPlane(ctx, facts)
	switch {
	case err != nil:
		return err
	case !plane.hasKubeadm():
		return errNoPrimaries
	}
	own := plane.ownAddresses(facts.Node)
	others := plane.otherAddresses(facts.Node.Name, own)
	if len(others) == 0 {
		err := fmt.Errorf("find the etcd members: no other primary than %s is known; its purge would leave no control plane", facts.Node.Name)
		if !record.Request.Force {
			return err
		}
		facts.Etcd = &EtcdFacts{Problem: err.Error(), Unasked: true}
		return nil
	}
	return p.captureMember(ctx, record, facts, kubeadm.EtcdClientURLs(others), kubeadm.EtcdPeerURLs(own), plane.others)
}

// captureMember finds the node's etcd member. If EKCO cannot identify the member, a forced purge does not touch it, and
// any other purge waits.
func (p primaryPart) captureMember(ctx context.Context, record journal.ActionRecord, facts *Facts, endpoints, peers []string, others []kube.Node) error {
	api, err := p.plane.Etcd(endpoints)
	if err != nil {
		return fmt.Errorf("find the etcd member of node %s: %w", facts.Node.Name, err)
	}
	members, err := api.Members(ctx)
	if err != nil {
		return fmt.Errorf("find the etcd member of node %s: %w", facts.Node.Name, err)
	}
	facts.Etcd = &EtcdFacts{}
	member, err := etcd.Match(members, facts.Node.Name, peers, kubeadm.EtcdPeerURLs(internalIPs(others)))
	switch {
	case errors.Is(err, etcd.ErrNoMember):
		return nil
	case err != nil && record.Request.Force:
		facts.Etcd.Problem = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("find the etcd member of node %s: %w", facts.Node.Name, err)
	}
	facts.Etcd.Member = &member
	facts.Etcd.Endpoints = remainingEndpoints(endpoints, members, member)
	return nil
}

// remainingEndpoints returns the endpoints together with the client URLs of the other voters.
func remainingEndpoints(endpoints []string, members []etcd.Member, gone etcd.Member) []string {
	for _, m := range members {
		if m.ID == gone.ID || m.Learner {
			continue
		}
		for _, url := range m.ClientURLs {
			if !slices.Contains(endpoints, url) {
				endpoints = append(endpoints, url)
			}
		}
	}
	return endpoints
}

func (p primaryPart) plan(_ journal.ActionRecord, facts Facts) (journal.Plan, error) {
	var steps []journal.PlannedStep
	after := []string{doesDeleteNode}
	if facts.Etcd != nil && facts.Etcd.Member != nil {
		steps = append(steps, journal.PlannedStep{
			ID: doesRemoveMember, Does: doesRemoveMember, After: after, Preflights: irreversiblePreflights(nil, EtcdQuorumKept),
			Irreversible: true, Timeout: journal.Duration(removeMemberTimeout),
		})
		after = []string{doesRemoveMember}
	}
	if facts.Kubeadm != nil && facts.Kubeadm.Edit {
		steps = append(steps, journal.PlannedStep{
			ID: doesRemoveEndpoint, Does: doesRemoveEndpoint, After: after, Preflights: irreversiblePreflights(nil),
			Irreversible: true, Timeout: journal.Duration(removeEndpointTimeout),
		})
	}
	return journal.Plan{Steps: steps}, nil
}

func (primaryPart) gate(_ journal.ActionRecord, facts Facts) []string {
	return facts.quorumPreflights()
}

// quorumPreflights returns the etcd preflight if there is a member to check.
func (f Facts) quorumPreflights() []string {
	if f.Etcd == nil || (f.Etcd.Member == nil && f.Etcd.Problem == "") {
		return nil
	}
	return []string{EtcdQuorumKept}
}

func (primaryPart) name() string   { return "control plane" }
func (primaryPart) domain() string { return journal.DomainControlPlane }

func (p primaryPart) steps() map[string]actions.StepDef {
	return map[string]actions.StepDef{
		doesRemoveMember:   {Step: removeMember(p), Atomic: true},   // if etcd lists the member, it was not removed
		doesRemoveEndpoint: {Step: removeEndpoint(p), Atomic: true}, // one call writes the document
	}
}

func (p primaryPart) preflights() map[string]actions.Preflight {
	return map[string]actions.Preflight{EtcdQuorumKept: etcdQuorumKept{p.plane.Etcd}}
}
