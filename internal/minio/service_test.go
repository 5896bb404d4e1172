package minio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// TestAServiceIsSwitchedOnlyAsItWasSeen: whoever changed it since may have led clients elsewhere.
func TestAServiceIsSwitchedOnlyAsItWasSeen(t *testing.T) {
	m, client := installed()
	m.Point(`{"doesnotexist":"doesnotexist"}`)
	_, seen, err := client.ServiceTarget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.Point(`{"app":"ha-minio"}`)
	m.Point(`{"doesnotexist":"doesnotexist"}`)
	if _, err := client.Switch(t.Context(), seen); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("one that was changed and changed back: %v", err)
	}
	m.Point(`{"app":"minio"}`)
	_, now, err := client.ServiceTarget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Switch(t.Context(), now); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("one that is not disabled: %v", err)
	}
	if to, _, err := client.ServiceTarget(t.Context()); err != nil || to != journal.MinioServiceSingle {
		t.Errorf("%v: it leads to %s", err, to)
	}
}

// TestTheServiceIsOursAsLongAsNobodyElseChangedItsSelector: as the fields of a real API server say.
func TestTheServiceIsOursAsLongAsNobodyElseChangedItsSelector(t *testing.T) {
	const (
		selector = `{"f:spec":{"f:selector":{}}}`
		port     = `{"f:spec":{"f:ports":{".":{}}}}`
	)
	entry := func(manager, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":%s}`, manager, fields)
	}
	for name, test := range map[string]struct {
		managed []string
		version string
		want    bool
	}{
		"by EKCO":             {[]string{entry("kubectl", port), entry("ekco", selector)}, "7", true},
		"by another":          {[]string{entry("ekco", port), entry("kubectl", selector)}, "7", false},
		"nobody says":         {nil, "7", false},
		"it has changed":      {[]string{entry("ekco", selector)}, "6", false},
		"without fields":      {[]string{`{"manager":"ekco"}`}, "7", false},
		"of another kind":     {[]string{entry("ekco", `[]`)}, "7", false},
		"of its status alone": {[]string{entry("ekco", `{"f:status":{"f:selector":{}}}`)}, "7", false},
	} {
		objects := lone{object: `{"metadata":{"uid":"u","resourceVersion":"7","managedFields":[` + strings.Join(test.managed, ",") + `]},"spec":{"selector":{"app":"minio"}}}`}
		if is, err := minio.NewClient(objects, nil, "minio").LastSetByEKCO(t.Context(), test.version); err != nil || is != test.want {
			t.Errorf("%s: %t, %v", name, is, err)
		}
	}
}

// lone is an API server with one object.
type lone struct {
	kube.Objects
	object string
}

func (l lone) ReadObject(context.Context, kube.Ref) (json.RawMessage, error) {
	return json.RawMessage(l.object), nil
}
