package minio_test

import (
	"errors"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

var service = minio.ServiceRef(miniosim.Namespace)

func TestADisabledServiceIsPointedAndNoOtherIs(t *testing.T) {
	m, client := installed()
	leads := func(want journal.MinioService) {
		t.Helper()
		if got, err := client.Read(t.Context()); err != nil || got.Service != want {
			t.Errorf("%v: it leads to %q, want %q", err, got.Service, want)
		}
	}
	if err := client.Point(t.Context(), journal.MinioServiceHA); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("one that leads to the single MinIO: %v", err)
	}
	leads(journal.MinioServiceSingle)
	for _, to := range []journal.MinioService{journal.MinioServiceHA, journal.MinioServiceSingle} {
		m.Point(`{"doesnotexist":"doesnotexist"}`)
		before := m.Calls("patch services")
		for range 2 {
			if err := client.Point(t.Context(), to); err != nil {
				t.Errorf("to %s: %v", to, err)
			}
		}
		leads(to)
		if n := m.Calls("patch services") - before; n != 1 {
			t.Errorf("patched %d times", n)
		}
	}
	m.Point(`{"doesnotexist":"doesnotexist"}`)
	m.BeforeEffect = func(string) {
		m.Edit(service, func(object map[string]any) {
			object["spec"].(map[string]any)["selector"] = map[string]any{"app": "does-not-exist"}
		})
	}
	if err := client.Point(t.Context(), journal.MinioServiceHA); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("one that somebody changes at that moment: %v", err)
	}
	leads(journal.MinioServiceInstaller)
	m.Remove(service)
	if err := client.Point(t.Context(), journal.MinioServiceHA); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
}
