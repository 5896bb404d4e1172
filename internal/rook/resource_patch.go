package rook

import (
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// patch returns a patch that changes nothing if any value differs from the value that was read.
func (o resourceObject) patch(change journal.RookChange) []kube.PatchOp {
	patch := []kube.PatchOp{{Op: "test", Path: "/metadata/uid", Value: o.UID}}
	for _, place := range slices.Sorted(maps.Keys(change.Numbers)) {
		if o.numbers(versionWithAllNumbers)[place] == change.Numbers[place].To {
			continue
		}
		if change.Numbers[place].From == 0 {
			patch = append(patch, o.patchMgrs(change.Numbers[place].To)...)
			continue
		}
		patch = append(patch,
			kube.PatchOp{Op: "test", Path: place, Value: change.Numbers[place].From},
			kube.PatchOp{Op: "replace", Path: place, Value: change.Numbers[place].To})
	}
	if len(change.Nodes) > 0 {
		patch = append(patch, o.patchStorage(change.Nodes)...)
	}
	return patch
}

// patchMgrs returns a patch that sets the missing number of mgrs. A patch cannot test a missing field, so it tests the
// resource version.
func (o resourceObject) patchMgrs(count int) []kube.PatchOp {
	patch := []kube.PatchOp{{Op: "test", Path: "/metadata/resourceVersion", Value: o.ResourceVersion}}
	if o.Spec.Mgr == nil {
		return append(patch, kube.PatchOp{Op: "add", Path: "/spec/mgr", Value: map[string]int{"count": count}})
	}
	return append(patch, kube.PatchOp{Op: "add", Path: journal.RookMgrs, Value: count})
}

// versionWithAllNumbers is a version of Rook in which all numbers can change.
var versionWithAllNumbers = Version{Known: true, Major: 1, Minor: 9}

// storageNodes is the path of the list of nodes.
const storageNodes = "/spec/storage/nodes"

// patchStorage returns a patch that adds the missing nodes and makes Rook use only listed nodes. A patch cannot test a
// missing field. In that case it tests the resource version.
func (o resourceObject) patchStorage(nodes []journal.RookNode) []kube.PatchOp {
	storage := o.Spec.Storage
	var patch []kube.PatchOp
	if storage.UseAllNodes == nil || storage.Nodes == nil {
		patch = append(patch, kube.PatchOp{Op: "test", Path: "/metadata/resourceVersion", Value: o.ResourceVersion})
	}
	if storage.UseAllNodes != nil {
		patch = append(patch, kube.PatchOp{Op: "test", Path: "/spec/storage/useAllNodes", Value: *storage.UseAllNodes})
	}
	if storage.allNodes() {
		patch = append(patch, kube.PatchOp{Op: "replace", Path: "/spec/storage/useAllNodes", Value: false})
	}
	if storage.Nodes == nil {
		patch = append(patch, kube.PatchOp{Op: "add", Path: storageNodes, Value: []any{}})
	} else {
		patch = append(patch, kube.PatchOp{Op: "test", Path: storageNodes, Value: storage.Nodes})
	}
	for _, node := range nodes {
		if !slices.Contains(storage.hostnames(), node.Hostname) {
			patch = append(patch, kube.PatchOp{Op: "add", Path: storageNodes + "/-", Value: map[string]string{"name": node.Hostname}})
		}
	}
	return patch
}
