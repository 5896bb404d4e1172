package kurl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KubeadmConfig returns kubeadm's ConfigMap. Without a ClusterStatus it is the ConfigMap of Kubernetes 1.22 and later.
func KubeadmConfig(clusterStatus string) any {
	data := map[string]any{"ClusterConfiguration": "kind: ClusterConfiguration\nkubernetesVersion: v1.21.14\n"}
	if clusterStatus != "" {
		data["ClusterStatus"] = clusterStatus
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "kubeadm-config", "namespace": "kube-system"}, "data": data,
	}
}

// ClusterStatus returns the text that kubeadm wrote until Kubernetes 1.21, for primaries with these addresses.
func ClusterStatus(addresses map[string]string) string {
	var text strings.Builder
	text.WriteString("apiEndpoints:\n")
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		fmt.Fprintf(&text, "  %s:\n    advertiseAddress: %s\n    bindPort: 6443\n", name, addresses[name])
	}
	text.WriteString("apiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterStatus\n")
	return text.String()
}
