package rook

import (
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// patch changes nothing at all if what it changes is otherwise by then.
func (o resourceObject) patch(change journal.RookChange) []kube.PatchOp {
	patch := []kube.PatchOp{{Op: "test", Path: "/metadata/uid", Value: o.Metadata.UID}}
	for _, place := range slices.Sorted(maps.Keys(change.Numbers)) {
		if o.numbers(everyVersion)[place] == change.Numbers[place].To {
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

// patchMgrs sets a number where there is none, the only one of which that says anything: there is
// nothing of it to test, so that nothing else may have changed either.
func (o resourceObject) patchMgrs(count int) []kube.PatchOp {
	patch := []kube.PatchOp{{Op: "test", Path: "/metadata/resourceVersion", Value: o.Metadata.ResourceVersion}}
	if o.Spec.Mgr == nil {
		return append(patch, kube.PatchOp{Op: "add", Path: "/spec/mgr", Value: map[string]int{"count": count}})
	}
	return append(patch, kube.PatchOp{Op: "add", Path: journal.RookMgrs, Value: count})
}

// everyVersion has all numbers.
var everyVersion = Version{Known: true, Major: 1, Minor: 9}

// storageNodes is where nodes are listed.
const storageNodes = "/spec/storage/nodes"

// patchStorage lists the nodes that are not, and has no others used. Where a field is missing
// there is nothing of it to test, so that nothing else may have changed either.
func (o resourceObject) patchStorage(nodes []journal.RookNode) []kube.PatchOp {
	storage := o.Spec.Storage
	var patch []kube.PatchOp
	if storage.UseAllNodes == nil || storage.Nodes == nil {
		patch = append(patch, kube.PatchOp{Op: "test", Path: "/metadata/resourceVersion", Value: o.Metadata.ResourceVersion})
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
