package purge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

// planeView has the data of Kubernetes about the control plane.
type planeView struct {
	// kubeadm is true if kubeadm created the cluster.
	kubeadm bool
	// listed has the addresses of API servers, by node. They come from the ClusterStatus or, if there is none, from the
	// API servers' pods.
	listed map[string]kubeadm.Endpoint
	// others has all Nodes except the lost one.
	others []kube.Node
}

// readControlPlane reads the control plane, and captures kubeadm's data about the node.
func (p primaryPart) readControlPlane(ctx context.Context, facts *Facts) (planeView, error) {
	var view planeView
	config, err := p.plane.Kubeadm.KubeadmConfig(ctx)
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		return view, fmt.Errorf("read kubeadm's endpoints: %w", kube.NamePermission(err, "get", "configmaps in kube-system"))
	}
	view.kubeadm = err == nil
	if view.kubeadm {
		facts.Kubeadm = &KubeadmFacts{}
		view.listed, err = kubeadm.Endpoints(config.ClusterStatus)
		if err == nil {
			edit, editErr := kubeadm.RemoveEndpoint(config.ClusterStatus, facts.Node.Name)
			facts.Kubeadm.Edit = editErr != nil || edit.Changed()
		} else {
			// The step reports the failed read, when no other step depends on it.
			facts.Kubeadm.Edit = true
		}
	}
	if len(view.listed) == 0 {
		if view.listed, err = p.podEndpoints(ctx); err != nil {
			return view, err
		}
	}
	if own, ok := view.listed[facts.Node.Name]; ok && facts.Kubeadm != nil {
		facts.Kubeadm.Endpoint = &own
	}
	if view.hasKubeadm() {
		view.others, err = p.others(ctx, facts.Node)
	}
	return view, err
}

// podEndpoints reads the addresses from the pods of API servers.
func (p primaryPart) podEndpoints(ctx context.Context) (map[string]kubeadm.Endpoint, error) {
	pods, err := p.plane.Kubeadm.APIServerPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the API servers: %w", kube.NamePermission(err, "list", "pods in kube-system"))
	}
	listed := make(map[string]kubeadm.Endpoint, len(pods))
	for _, pod := range pods {
		if endpoint, err := kubeadm.ParseAdvertiseAddress(pod.AdvertiseEndpoint); err == nil {
			listed[pod.Node] = endpoint
		}
	}
	return listed, nil
}

// others returns all Nodes except the lost one. A Node with the same name but another UID counts as another Node.
func (p primaryPart) others(ctx context.Context, lost NodeIdentity) ([]kube.Node, error) {
	nodes, err := p.api.ListNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the other primaries: %w", kube.NamePermission(err, "list", "nodes"))
	}
	return slices.DeleteFunc(nodes, func(n kube.Node) bool { return n.UID == lost.UID }), nil
}

// hasKubeadm reports whether EKCO found any data of kubeadm. If not, kubeadm did not create the cluster, and EKCO does
// not search for etcd.
func (v planeView) hasKubeadm() bool { return v.kubeadm || len(v.listed) > 0 }

// ownAddresses returns the addresses that the lost node may have had.
func (v planeView) ownAddresses(lost NodeIdentity) []string {
	return distinct(lost.InternalIP, v.listed[lost.Name].AdvertiseAddress)
}

// otherAddresses returns the addresses of the other primaries. Primaries that kubeadm does not list come last, with the
// addresses of their Nodes, because some pods of API servers lack labels and annotations.
func (v planeView) otherAddresses(lost string, own []string) []string {
	var addresses, unlisted []string
	for _, node := range slices.Sorted(maps.Keys(v.listed)) {
		if node != lost {
			addresses = append(addresses, v.listed[node].AdvertiseAddress)
		}
	}
	for _, node := range v.others {
		if v.listed[node.Name].AdvertiseAddress == "" && node.Facts.Role == journal.RolePrimary {
			unlisted = append(unlisted, node.Facts.InternalIP)
		}
	}
	return slices.DeleteFunc(distinct(append(addresses, unlisted...)...), func(address string) bool { return slices.Contains(own, address) })
}

func internalIPs(nodes []kube.Node) (addresses []string) {
	for _, node := range nodes {
		addresses = append(addresses, node.Facts.InternalIP)
	}
	return distinct(addresses...)
}

// distinct returns the addresses in order, without empty and repeated ones.
func distinct(addresses ...string) (once []string) {
	for _, address := range addresses {
		if address != "" && !slices.Contains(once, address) {
			once = append(once, address)
		}
	}
	return once
}
