package kurl

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
)

// These are names that Rook and kURL use.
const (
	RookNamespace = "rook-ceph"
	// ToolsPod is the name, app and container of the pod that has the ceph program.
	ToolsPod = "rook-ceph-tools"
)

// RookYAML has Rook's namespace, the definition of CephClusters, and Rook's
// operator. Apply it, and wait until the definition is established, before other
// objects.
//
//go:embed rook.yaml
var RookYAML string

// RookObjects returns a List of Rook's objects for hosts with these OSDs: the OSDs' Deployments, the tools pod on a
// node, and the CephCluster that lists the hosts.
func RookObjects(hosts map[string][]int, toolsNode string) any {
	items := []any{ToolsDeployment(toolsNode), cephCluster(hosts)}
	for host, ids := range hosts {
		for _, id := range ids {
			items = append(items, OSDDeployment(host, id))
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

func cephCluster(hosts map[string][]int) any {
	var entries []any
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		// kURL and persons write entries both with and without devices.
		entry := map[string]any{"name": host}
		if count := len(hosts[host]); count > 1 {
			entry["devices"] = []any{map[string]any{"name": "sdb", "config": map[string]any{"osdsPerDevice": fmt.Sprint(count)}}}
		}
		entries = append(entries, entry)
	}
	return map[string]any{
		"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
		"metadata": map[string]any{"name": "rook-ceph", "namespace": RookNamespace},
		"spec": map[string]any{
			"dataDirHostPath": "/opt/replicated/rook",
			"mon":             map[string]any{"count": 3},
			"mgr":             map[string]any{"count": 2}, // as many as EKCO requests, so that it raises nothing
			"storage":         map[string]any{"useAllNodes": false, "useAllDevices": true, "nodes": entries},
		},
	}
}

// OSDDeployment returns a Deployment with the name, labels and node selector that Rook sets.
func OSDDeployment(host string, id int) any {
	labels := map[string]any{"app": "rook-ceph-osd", "ceph-osd-id": fmt.Sprint(id), "rook_cluster": "rook-ceph"}
	return deploymentOn(fmt.Sprintf("rook-ceph-osd-%d", id), host, "osd", labels)
}

// ToolsDeployment returns the Deployment of the tools pod, on a node.
func ToolsDeployment(host string) any {
	return deploymentOn(ToolsPod, host, ToolsPod, map[string]any{"app": ToolsPod})
}

func deploymentOn(name, host, container string, labels map[string]any) any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name, "namespace": RookNamespace, "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"nodeSelector":                  map[string]any{"kubernetes.io/hostname": host},
					"terminationGracePeriodSeconds": 1,
					"containers":                    []any{map[string]any{"name": container, "image": "ceph:16"}},
				},
			},
		},
	}
}
