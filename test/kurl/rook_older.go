package kurl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// RookManifests returns the folder of the manifests that a version of Rook ships, such as "1.4". There must be a module
// for that version in test/crds, whose folder is dir.
func RookManifests(t testing.TB, dir, version string) string {
	t.Helper()
	module := moduleDir(t, filepath.Join(dir, "rook"+version), "github.com/rook/rook")
	for _, folder := range []string{"deploy/examples", "cluster/examples/kubernetes/ceph"} {
		folder = filepath.Join(module, filepath.FromSlash(folder))
		if _, err := os.Stat(filepath.Join(folder, "operator.yaml")); err == nil {
			return folder
		}
	}
	t.Fatalf("Rook %s has no manifests in %s", version, module)
	return ""
}

// RookDefinitions returns a List of the definitions of Rook's custom resources that EKCO uses, from the files that a
// version ships. It converts definitions of apiextensions.k8s.io/v1beta1, which no API server accepts any more, so that
// undefined fields are preserved as before.
func RookDefinitions(t testing.TB, manifests string) any {
	t.Helper()
	known := map[string]bool{}
	for _, plural := range RookPlurals {
		known[plural+".ceph.rook.io"] = true
	}
	var items []any
	for _, object := range append(Documents(t, manifests, "common.yaml"), Documents(t, manifests, "crds.yaml")...) {
		if object["kind"] != "CustomResourceDefinition" || !known[object["metadata"].(map[string]any)["name"].(string)] {
			continue
		}
		if object["apiVersion"] == "apiextensions.k8s.io/v1beta1" {
			object = current(object)
		}
		items = append(items, object)
	}
	if len(items) != len(known) {
		t.Fatalf("%s defines %d of %d kinds", manifests, len(items), len(known))
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// RookPlurals has the API names of Rook's custom resources that EKCO uses.
var RookPlurals = []string{"cephclusters", "cephblockpools", "cephfilesystems", "cephobjectstores"}

// Documents returns the objects in a file, or none if the file is missing.
func Documents(t testing.TB, folder, name string) (objects []map[string]any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for err == nil {
		var object map[string]any
		if err = decoder.Decode(&object); err == nil && object != nil {
			objects = append(objects, object)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("read %s of %s: %v", name, folder, err)
	}
	return objects
}

// current converts a definition from v1beta1 to v1.
func current(old map[string]any) map[string]any {
	spec := old["spec"].(map[string]any)
	schema := map[string]any{"type": "object"}
	if validation, has := spec["validation"].(map[string]any); has {
		schema = validation["openAPIV3Schema"].(map[string]any)
	}
	schema = open(schema)
	delete(schema, "nullable") // the root may not have it
	version := map[string]any{"name": spec["version"], "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema}}
	if subresources, has := spec["subresources"]; has {
		version["subresources"] = subresources
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": old["metadata"],
		"spec": map[string]any{"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": []any{version}},
	}
}

// open adds to a schema and its nested schemas the types that v1 requires and v1beta1 did not, and preserves undefined
// fields.
func open(schema map[string]any) map[string]any {
	if properties, has := schema["properties"].(map[string]any); has {
		schema["type"] = "object"
		for name, property := range properties {
			properties[name] = open(property.(map[string]any))
		}
	}
	if items, has := schema["items"].(map[string]any); has {
		schema["type"] = "array"
		schema["items"] = open(items)
	}
	if kind := schema["type"]; kind == nil || kind == "object" {
		schema["x-kubernetes-preserve-unknown-fields"] = true
	}
	schema["nullable"] = true
	return schema
}
