package kurl

import (
	"path/filepath"
	"testing"
)

// RookCRDs returns the file with Rook's CRDs, in the version that test/crds pins. dir is the folder of that module.
func RookCRDs(t testing.TB, dir string) string {
	t.Helper()
	return filepath.Join(moduleDir(t, dir, "github.com/rook/rook"), "deploy", "examples", "crds.yaml")
}

// RookStorage returns a List of what kURL's Rook add-on creates on the first node of a cluster: the operator's
// Deployment of that version, which runs nothing here, the tools pod on a node, and storage with one copy of
// everything.
func RookStorage(version, toolsNode string) any {
	one := func() any {
		return map[string]any{"failureDomain": "host", "replicated": map[string]any{"size": 1, "requireSafeReplicaSize": false}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		RookOperator(version),
		ToolsDeployment(toolsNode),
		rookObject("CephCluster", "rook-ceph", map[string]any{
			"cephVersion":     map[string]any{"image": "ceph:16"},
			"dataDirHostPath": "/opt/replicated/rook",
			"mon":             map[string]any{"count": 1, "allowMultiplePerNode": false},
			"mgr":             map[string]any{"count": 1},
			"storage":         map[string]any{"useAllNodes": true, "useAllDevices": true},
		}),
		rookObject("CephBlockPool", "replicapool", one()),
		rookObject("CephFilesystem", "rook-shared-fs", map[string]any{
			"metadataPool": one(), "dataPools": []any{one()},
			"metadataServer": map[string]any{"activeCount": 1, "activeStandby": true},
		}),
		rookObject("CephObjectStore", "rook-ceph-store", map[string]any{
			"metadataPool": one(), "dataPool": one(),
			"gateway": map[string]any{"port": 80, "instances": 1},
		}),
	}}
}

func rookObject(kind, name string, spec any) any {
	return map[string]any{
		"apiVersion": "ceph.rook.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": RookNamespace}, "spec": spec,
	}
}

// RookOperator returns the Deployment of Rook's operator of that version. It runs nothing.
func RookOperator(version string) any {
	labels := map[string]any{"app": "rook-ceph-operator"}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "rook-ceph-operator", "namespace": RookNamespace, "labels": labels},
		"spec": map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "rook-ceph-operator", "image": "docker.io/rook/ceph:" + version}}},
			},
		},
	}
}
