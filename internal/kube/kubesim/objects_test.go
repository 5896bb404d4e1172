package kubesim_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

func TestASimulatedObjectHasVersionsAndGenerationsAndHoldsPatchesToTheirTests(t *testing.T) {
	objects, ctx := kubesim.NewObjects(), t.Context()
	ref := kube.Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: "default", Name: "x"}
	_, err := objects.ReadObject(ctx, ref)
	want(t, err, kube.ErrNotFound)
	uid := objects.Put(ref, `{"spec":{"replicas":1},"status":{}}`)
	replace := func(from, to int) error {
		_, err := objects.PatchObject(ctx, ref, []kube.PatchOp{{Op: "test", Path: "/spec/replicas", Value: from}, {Op: "replace", Path: "/spec/replicas", Value: to}})
		return err
	}
	want(t, replace(2, 3), kube.ErrConflict)
	want(t, replace(1, 3), nil)
	old, err := objects.ReadObject(ctx, ref)
	want(t, err, nil)
	objects.Edit(ref, func(object map[string]any) { object["status"] = map[string]any{"readyReplicas": 3} })
	_, err = objects.ReplaceObject(ctx, ref, old)
	want(t, err, kube.ErrConflict)
	read, err := objects.ReadObject(ctx, ref)
	want(t, err, nil)
	var now struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
			Generation      int    `json:"generation"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(read, &now); err != nil || now.Metadata.UID != uid || now.Metadata.Generation != 2 || now.Metadata.ResourceVersion != "3" {
		t.Errorf("%v: it is %s", err, read)
	}
	scale := ref
	scale.Subresource = "scale"
	old, err = objects.ReadObject(ctx, scale)
	want(t, err, nil)
	bigger := []byte(strings.ReplaceAll(string(old), `"replicas":3`, `"replicas":6`))
	_, err = objects.ReplaceObject(ctx, scale, bigger)
	want(t, err, nil)
	_, err = objects.ReplaceObject(ctx, scale, bigger)
	want(t, err, kube.ErrConflict)
	want(t, replace(6, 3), nil)
	_, err = objects.CreateObject(ctx, ref, []byte(`{"spec":{"replicas":9}}`))
	want(t, err, kube.ErrConflict)
	want(t, replace(3, 3), nil)
	objects.Forbid("patch statefulsets")
	want(t, replace(3, 4), kube.ErrForbidden)
	objects.Remove(ref)
	_, err = objects.ReplaceObject(ctx, ref, read)
	want(t, err, kube.ErrNotFound)
	created, err := objects.CreateObject(ctx, ref, []byte(`{"spec":{"replicas":9}}`))
	want(t, err, nil)
	if !strings.Contains(string(created), `"replicas":9`) || strings.Contains(string(created), uid) {
		t.Errorf("created is %s", created)
	}
	if n := objects.Calls("get statefulsets"); n != 3 {
		t.Errorf("read %d times", n)
	}
}
