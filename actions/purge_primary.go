package actions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

// Kubeadm is what a purge asks about what kubeadm left in the cluster.
// [kube.Client] implements it.
type Kubeadm interface {
	// KubeadmConfig returns ErrNotFound where there is no such ConfigMap.
	KubeadmConfig(ctx context.Context) (kube.KubeadmConfig, error)
	// WriteClusterStatus returns ErrConflict when the ConfigMap is not of that
	// version.
	WriteClusterStatus(ctx context.Context, clusterStatus, version string) (string, error)
	APIServerPods(ctx context.Context) ([]kube.APIServerPod, error)
}

// ControlPlane is where the control plane keeps its members.
type ControlPlane struct {
	Kubeadm Kubeadm
	// Etcd connects to the etcd members at the endpoints.
	Etcd etcd.Dial
}

// PurgeControlPlane makes a purge remove the etcd member and the kubeadm
// endpoint of a primary. Workers are not concerned.
func PurgeControlPlane(plane ControlPlane) PurgeOption {
	return func(parts *purgeParts) {
		api := parts.node.(nodePart).api
		parts.primary = primaryPart{api: api, plane: plane}
	}
}

// KubeadmFacts is what kubeadm knew of the node.
type KubeadmFacts struct {
	// Endpoint is where the node's API server listened, nil when it is not known.
	Endpoint *kubeadm.Endpoint `json:"endpoint,omitempty"`
	// Edit is set when the ClusterStatus lists the node, or is malformed, or
	// cannot be understood.
	Edit bool `json:"edit,omitempty"`
}

// EtcdFacts is what etcd knew of the node.
type EtcdFacts struct {
	// Member is the node's, nil when it has none.
	Member *etcd.Member `json:"member,omitempty"`
	// Endpoints are client URLs of the members that remain.
	Endpoints []string `json:"endpoints,omitempty"`
	// Problem says why no member is removed although one could be meant.
	Problem string `json:"problem,omitempty"`
}

// primaryPart is what a primary is beyond a worker.
type primaryPart struct {
	api   kube.API
	plane ControlPlane
}

func (p primaryPart) capture(ctx context.Context, record journal.ActionRecord, facts *PurgeFacts) error {
	if !facts.Node.mayBePrimary() {
		return nil
	}
	replacement, err := facts.Node.replacement(ctx, p.api)
	if err != nil || replacement != "" {
		// Whatever is under the name now belongs to the new node.
		return err
	}
	listed, err := p.apiServers(ctx, facts)
	if err != nil || len(listed) == 0 {
		return err
	}
	own := p.ownAddresses(*facts, listed)
	var others []string
	for _, node := range slices.Sorted(maps.Keys(listed)) {
		if address := listed[node].AdvertiseAddress; node != facts.Node.Name && address != "" && !slices.Contains(own, address) {
			others = append(others, address)
		}
	}
	if len(others) == 0 {
		return fmt.Errorf("find the etcd members: no other primary than %s is known; its purge would leave no control plane", facts.Node.Name)
	}
	return p.captureMember(ctx, record, facts, kubeadm.EtcdClientURLs(others), kubeadm.EtcdPeerURLs(own))
}

// apiServers returns where API servers listen, by node: as the ClusterStatus
// says or, where there is none, as their pods do. There are none in a cluster
// that kubeadm did not make.
func (p primaryPart) apiServers(ctx context.Context, facts *PurgeFacts) (map[string]kubeadm.Endpoint, error) {
	config, err := p.plane.Kubeadm.KubeadmConfig(ctx)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return nil, fmt.Errorf("read kubeadm's endpoints: %w", missing(err, "get", "configmaps in kube-system"))
	}
	facts.Kubeadm = &KubeadmFacts{}
	listed, err := kubeadm.Endpoints(config.ClusterStatus)
	if err == nil {
		edit, editErr := kubeadm.RemoveEndpoint(config.ClusterStatus, facts.Node.Name)
		facts.Kubeadm.Edit = editErr != nil || edit.Changed()
	} else {
		// The step will say so, when nothing depends on it any more.
		facts.Kubeadm.Edit = true
	}
	if len(listed) == 0 {
		if listed, err = p.annotated(ctx); err != nil {
			return nil, err
		}
	}
	if own, ok := listed[facts.Node.Name]; ok {
		facts.Kubeadm.Endpoint = &own
	}
	return listed, nil
}

// annotated returns what the pods of API servers say.
func (p primaryPart) annotated(ctx context.Context) (map[string]kubeadm.Endpoint, error) {
	pods, err := p.plane.Kubeadm.APIServerPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the API servers: %w", missing(err, "list", "pods in kube-system"))
	}
	listed := make(map[string]kubeadm.Endpoint, len(pods))
	for _, pod := range pods {
		if endpoint, err := kubeadm.ParseAdvertiseAddress(pod.AdvertiseEndpoint); err == nil {
			listed[pod.Node] = endpoint
		}
	}
	return listed, nil
}

func (primaryPart) ownAddresses(facts PurgeFacts, listed map[string]kubeadm.Endpoint) []string {
	var own []string
	for _, address := range []string{facts.Node.InternalIP, listed[facts.Node.Name].AdvertiseAddress} {
		if address != "" && !slices.Contains(own, address) {
			own = append(own, address)
		}
	}
	return own
}

// captureMember finds the node's etcd member. With --force a member that cannot
// be told from others is left alone; without, the purge waits.
func (p primaryPart) captureMember(ctx context.Context, record journal.ActionRecord, facts *PurgeFacts, endpoints, peers []string) error {
	api, err := p.plane.Etcd(endpoints)
	if err != nil {
		return fmt.Errorf("find the etcd member of node %s: %w", facts.Node.Name, err)
	}
	members, err := api.Members(ctx)
	if err != nil {
		return fmt.Errorf("find the etcd member of node %s: %w", facts.Node.Name, err)
	}
	facts.Etcd = &EtcdFacts{}
	member, err := etcd.Match(members, facts.Node.Name, peers)
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
	facts.Etcd.Endpoints = remaining(endpoints, members, member)
	return nil
}

// remaining adds the client URLs of the other voters to the endpoints.
func remaining(endpoints []string, members []etcd.Member, gone etcd.Member) []string {
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

func (p primaryPart) plan(_ journal.ActionRecord, facts PurgeFacts) ([]journal.PlannedStep, error) {
	var steps []journal.PlannedStep
	after := []string{doesDeleteNode}
	if facts.Etcd != nil && facts.Etcd.Member != nil {
		steps = append(steps, journal.PlannedStep{
			ID: doesRemoveMember, Does: doesRemoveMember, After: after, Preflights: guarded(nil, EtcdQuorumKept),
			Irreversible: true, Timeout: journal.Duration(removeMemberTimeout),
		})
		after = []string{doesRemoveMember}
	}
	if facts.Kubeadm != nil && facts.Kubeadm.Edit {
		steps = append(steps, journal.PlannedStep{
			ID: doesRemoveEndpoint, Does: doesRemoveEndpoint, After: after, Preflights: guarded(nil),
			Irreversible: true, Timeout: journal.Duration(removeEndpointTimeout),
		})
	}
	return steps, nil
}

func (primaryPart) gate(_ journal.ActionRecord, facts PurgeFacts) []string {
	if facts.Etcd == nil || (facts.Etcd.Member == nil && facts.Etcd.Problem == "") {
		return nil
	}
	return []string{EtcdQuorumKept}
}

func (p primaryPart) steps() map[string]Step {
	return map[string]Step{doesRemoveMember: removeMember(p), doesRemoveEndpoint: removeEndpoint(p)}
}

func (p primaryPart) preflights() map[string]Preflight {
	return map[string]Preflight{EtcdQuorumKept: etcdQuorumKept{p.plane.Etcd}}
}
