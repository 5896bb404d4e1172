package kubesim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
)

// WriteClusterStatusEffect is the name of the effect of WriteClusterStatus.
const WriteClusterStatusEffect = "write-cluster-status"

// Verbs of kubeadm's ConfigMap and of API servers that can be forbidden.
const (
	GetKubeadmConfig    = "get configmaps in kube-system"
	UpdateKubeadmConfig = "update configmaps in kube-system"
	ListPods            = "list pods"
)

// kubeadmState is what kubeadm keeps in the cluster.
type kubeadmState struct {
	// present is set if there is a ConfigMap, listed if it has a ClusterStatus.
	present, listed bool
	clusterStatus   string
	version         int
	apiServers      []kube.APIServerPod
}

// SetKubeadmConfig sets kubeadm's ConfigMap as before Kubernetes 1.22, like another client.
func (c *Cluster) SetKubeadmConfig(clusterStatus string) {
	c.change(func() {
		c.kubeadm.present, c.kubeadm.listed, c.kubeadm.clusterStatus = true, true, clusterStatus
		c.kubeadm.version++
	})
}

// SetKubeadmConfig122 sets kubeadm's ConfigMap as since Kubernetes 1.22, without a ClusterStatus.
func (c *Cluster) SetKubeadmConfig122() {
	c.change(func() {
		c.kubeadm.present, c.kubeadm.listed, c.kubeadm.clusterStatus = true, false, ""
		c.kubeadm.version++
	})
}

// RemoveKubeadm makes it a cluster that kubeadm did not create.
func (c *Cluster) RemoveKubeadm() {
	c.change(func() { c.kubeadm = kubeadmState{version: c.kubeadm.version} })
}

// AddAPIServer adds the mirror pod of a node's API server.
func (c *Cluster) AddAPIServer(node, endpoint string) {
	c.change(func() {
		c.kubeadm.apiServers = append(c.kubeadm.apiServers, kube.APIServerPod{
			Name: "kube-apiserver-" + node, Node: node, AdvertiseEndpoint: endpoint,
		})
		slices.SortFunc(c.kubeadm.apiServers, func(a, b kube.APIServerPod) int { return strings.Compare(a.Name, b.Name) })
	})
}

// KubeadmConfig simulates [kube.Client.KubeadmConfig].
func (c *Cluster) KubeadmConfig(ctx context.Context) (kube.KubeadmConfig, error) {
	if err := sim.Reach(ctx, &c.APIServer, GetKubeadmConfig); err != nil {
		return kube.KubeadmConfig{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kubeadm.present {
		return kube.KubeadmConfig{}, fmt.Errorf("kubeadm-config: %w", kube.ErrNotFound)
	}
	return kube.KubeadmConfig{ClusterStatus: c.kubeadm.clusterStatus, Version: strconv.Itoa(c.kubeadm.version)}, nil
}

// WriteClusterStatus simulates [kube.Client.WriteClusterStatus].
func (c *Cluster) WriteClusterStatus(ctx context.Context, clusterStatus, version string) (string, error) {
	written := ""
	err := c.effect(ctx, UpdateKubeadmConfig, WriteClusterStatusEffect, func() (bool, error) {
		present := strconv.Itoa(c.kubeadm.version)
		switch {
		case !c.kubeadm.present || version != present:
			return false, fmt.Errorf("kubeadm-config is of version %s, not %s: %w", present, version, kube.ErrConflict)
		case !c.kubeadm.listed:
			return false, fmt.Errorf("kubeadm-config has no ClusterStatus to replace")
		}
		c.kubeadm.clusterStatus = clusterStatus
		c.kubeadm.version++
		written = strconv.Itoa(c.kubeadm.version)
		return true, nil
	})
	if err != nil {
		return "", err
	}
	return written, nil
}

// APIServerPods simulates [kube.Client.APIServerPods]. DeleteNode keeps the pod, as Kubernetes does until its garbage
// collector runs; [Cluster.RemoveNode] removes it.
func (c *Cluster) APIServerPods(ctx context.Context) ([]kube.APIServerPod, error) {
	if err := sim.Reach(ctx, &c.APIServer, ListPods); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kubeadm.apiServers), nil
}
