package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kubeadm"
)

// KubeadmConfig is the part of kubeadm's ConfigMap that EKCO reads.
type KubeadmConfig struct {
	// ClusterStatus lists the API endpoints. It is empty since Kubernetes 1.22. Package kubeadm parses and edits it.
	ClusterStatus string
	// Version is the ConfigMap's resource version.
	Version string
}

// KubeadmConfig reads ConfigMap kube-system/kubeadm-config. ErrNotFound means that kubeadm did not create the cluster.
func (c *Client) KubeadmConfig(ctx context.Context) (KubeadmConfig, error) {
	configMap, err := c.kubeadmConfigMap(ctx)
	if err != nil {
		return KubeadmConfig{}, err
	}
	return KubeadmConfig{ClusterStatus: configMap.Data[kubeadm.ClusterStatusKey], Version: configMap.ResourceVersion}, nil
}

// WriteClusterStatus replaces only the ClusterStatus in kubeadm's ConfigMap, and returns the new version. It returns
// ErrConflict if the ConfigMap does not have the given version. It never creates the ConfigMap or the key.
func (c *Client) WriteClusterStatus(ctx context.Context, clusterStatus, version string) (string, error) {
	this := call{"update", "configmaps", fullName(kubeadm.ConfigMapNamespace, kubeadm.ConfigMapName)}
	// An update replaces the whole object, so the rest is read first.
	configMap, err := c.kubeadmConfigMap(ctx)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("%s: %w: it was deleted", this, ErrConflict)
	case err != nil:
		return "", err
	case configMap.ResourceVersion != version:
		return "", fmt.Errorf("%s: %w: it is of version %s, not %s; read it again and repeat", this, ErrConflict, configMap.ResourceVersion, version)
	}
	if _, ok := configMap.Data[kubeadm.ClusterStatusKey]; !ok {
		return "", fmt.Errorf("%s: it has no key %s to replace", this, kubeadm.ClusterStatusKey)
	}
	configMap.Data[kubeadm.ClusterStatusKey] = clusterStatus
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	var written corev1.ConfigMap
	err = c.core.Put().Namespace(kubeadm.ConfigMapNamespace).Resource("configmaps").
		Name(kubeadm.ConfigMapName).Body(configMap).Do(ctx).Into(&written)
	if errors.Is(Sentinel(err), ErrNotFound) {
		return "", fmt.Errorf("%s: %w: it was deleted", this, ErrConflict)
	}
	return written.ResourceVersion, this.fail(err)
}

func (c *Client) kubeadmConfigMap(ctx context.Context) (*corev1.ConfigMap, error) {
	var configMap corev1.ConfigMap
	err := c.get(ctx, "configmaps", kubeadm.ConfigMapNamespace, kubeadm.ConfigMapName, &configMap)
	return &configMap, err
}
