package kubesim

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// otherManager is the field manager of other clients.
const otherManager = "kubectl"

// setOwners sets the manager that last changed each field of the spec. As on a real API server, a field whose value
// stays the same keeps its manager.
func setOwners(meta, before map[string]any, spec any, manager string) {
	is, _ := spec.(map[string]any)
	was, _ := before["spec"].(map[string]any)
	owners, since := ownersOf(before)
	for field := range fieldsOf(was, is) {
		if !reflect.DeepEqual(was[field], is[field]) {
			owners[field], since[manager] = manager, time.Now().UTC().Format(time.RFC3339)
		}
	}
	of := map[string]map[string]any{}
	for field, owner := range owners {
		if of[owner] == nil {
			of[owner] = map[string]any{}
		}
		of[owner]["f:"+field] = map[string]any{}
	}
	var entries []any
	for _, owner := range slices.Sorted(maps.Keys(of)) {
		entries = append(entries, map[string]any{
			"manager": owner, "operation": "Update", "time": since[owner], "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": of[owner]},
		})
	}
	meta["managedFields"] = entries
}

// fieldsOf returns the names of the fields in both maps.
func fieldsOf(was, is map[string]any) map[string]bool {
	names := map[string]bool{}
	for _, spec := range []map[string]any{was, is} {
		for field := range spec {
			names[field] = true
		}
	}
	return names
}

// ownersOf returns which manager last changed each field of an object's spec, and when.
func ownersOf(object map[string]any) (owners, since map[string]string) {
	owners, since = map[string]string{}, map[string]string{}
	meta, _ := object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, entry := range entries {
		of := entry.(map[string]any)
		since[of["manager"].(string)] = of["time"].(string)
		for field := range of["fieldsV1"].(map[string]any)["f:spec"].(map[string]any) {
			owners[field[len("f:"):]] = of["manager"].(string)
		}
	}
	return owners, since
}
