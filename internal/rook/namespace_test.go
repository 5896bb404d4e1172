package rook

import (
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// TestWhatMayNotBeReadIsNotThereOnceTheNamespaceIsGone: EKCO's permissions were in it.
func TestWhatMayNotBeReadIsNotThereOnceTheNamespaceIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		namespace func(*kubesim.Objects)
		want      error
		says      string
	}{
		"the namespace is there":       {func(o *kubesim.Objects) { o.Put(NamespaceRef(), `{}`) }, kube.ErrForbidden, ""},
		"the namespace is gone":        {func(*kubesim.Objects) {}, kube.ErrNotFound, "there is no namespace rook-ceph"},
		"the namespace cannot be read": {func(o *kubesim.Objects) { o.Forbid("get namespaces rook-ceph") }, kube.ErrForbidden, ""},
		"the namespace is being deleted": {func(o *kubesim.Objects) {
			o.Put(NamespaceRef(), `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
		}, kube.ErrNotFound, "namespace rook-ceph is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			custom, objects, of := withResource(blockPool, `{}`)
			pods := NewPods(objects)
			test.namespace(objects)
			for _, verb := range []string{"get cephblockpools", "get cephclusters", "get configmaps", "get deployments", "list deployments"} {
				objects.Forbid(verb)
			}
			_, poolErr := custom.ReadResource(t.Context(), of)
			_, installedErr := pods.Installed(t.Context())
			_, configErr := pods.ReadIn(t.Context(), Installed{}, journal.RookOperatorConfig)
			_, workloadsErr := pods.Workloads(t.Context())
			for what, err := range map[string]error{"a pool": poolErr, "Rook": installedErr, "the ConfigMap": configErr, "the workloads": workloadsErr} {
				if !errors.Is(kube.Sentinel(err), test.want) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v, want %v", what, err, test.want)
				}
			}
		})
	}
}

// TestAnOutageIsNoNamespaceThatIsGone: what cannot be told stays so.
func TestAnOutageIsNoNamespaceThatIsGone(t *testing.T) {
	custom, objects, of := withResource(blockPool, `{}`)
	objects.Outage(true)
	if _, err := custom.ReadResource(t.Context(), of); !errors.Is(kube.Sentinel(err), kube.ErrUnavailable) {
		t.Errorf("it says %v", err)
	}
}
