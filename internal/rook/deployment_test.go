package rook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
)

func osdOf(name, uid, id, hostname string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q,"resourceVersion":"7","labels":{"app":"rook-ceph-osd","ceph-osd-id":%q}},
		"spec":{"replicas":1,"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":%q}}}}}`, name, uid, id, hostname)
}

func TestAllOSDsAreFoundWithTheirMachinesWhateverTheirIDs(t *testing.T) {
	_, client := newServer(t, map[string]string{deploymentPath + "?app=rook-ceph-osd": `{"items":[` + strings.Join([]string{
		strings.Replace(osdOf("rook-ceph-osd-9", "u9", "9", "w1"), `"template":{"spec":{`,
			`"template":{"spec":{"containers":[{"name":"osd","env":[{"name":"ROOK_OSD_ID","value":"9"},{"name":"ROOK_OSD_UUID","value":"uuid-9"}]}],`, 1),
		osdOf("rook-ceph-osd-10", "u10", "10", "w1"),
		osdOf("rook-ceph-osd-123", "u123", "123", "w1"), osdOf("rook-ceph-osd-1", "u1", "1", "w10.lan"),
		osdOf("rook-ceph-osd-x", "ux", "x1", "w1"), osdOf("rook-ceph-osd-neg", "un", "-1", "w1"),
		`{"metadata":{"name":"on-a-claim","labels":{"ceph-osd-id":"5"}},"spec":{"template":{"spec":{}}}}`,
	}, ",") + `]}`})
	got, err := client.OSDDeployments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []OSDDeployment{
		{Name: "on-a-claim", OSD: 5, Replicas: 1},
		{Name: "rook-ceph-osd-1", UID: "u1", OSD: 1, Hostname: "w10.lan", Replicas: 1},
		{Name: "rook-ceph-osd-10", UID: "u10", OSD: 10, Hostname: "w1", Replicas: 1},
		{Name: "rook-ceph-osd-123", UID: "u123", OSD: 123, Hostname: "w1", Replicas: 1},
		{Name: "rook-ceph-osd-9", UID: "u9", OSD: 9, UUID: "uuid-9", Hostname: "w1", Replicas: 1},
		{Name: "rook-ceph-osd-neg", UID: "un", OSD: UnknownOSD, Hostname: "w1", Replicas: 1},
		{Name: "rook-ceph-osd-x", UID: "ux", OSD: UnknownOSD, Hostname: "w1", Replicas: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (- wanted, + got):\n%s", diff)
	}
}

func TestWithoutRookThereAreNoOSDs(t *testing.T) {
	s, client := newServer(t, nil)
	if got, err := client.OSDDeployments(t.Context()); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	s.failures["GET "+deploymentPath] = 500
	if _, err := client.OSDDeployments(t.Context()); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("a broken API server: %v", err)
	}
}

const onePath = deploymentPath + "/rook-ceph-osd-3"

func TestScalingDownChangesTheReplicasAndNothingElse(t *testing.T) {
	const before = `{"metadata":{"name":"rook-ceph-osd-3","uid":"u3","resourceVersion":"9007199254740993"},
		"spec":{"replicas":1,"progressDeadlineSeconds":600,"big":9007199254740993,"ratio":0.10,"template":{"spec":{"unknown":{"a":[1,null]}}}}}`
	s, client := newServer(t, map[string]string{onePath: before})
	for range 2 {
		if err := client.ScaleDown(t.Context(), "rook-ceph-osd-3", "u3"); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Replace(before, `"replicas":1`, `"replicas":0`, 1)
	if diff := cmp.Diff(canonical(t, want), canonical(t, s.object(onePath))); diff != "" {
		t.Errorf("written (- wanted, + got):\n%s", diff)
	}
	if writes := s.writes(); !slices.Equal(writes, []string{"PUT " + onePath}) {
		t.Errorf("writes %q", writes)
	}
}

// canonical sorts the keys of an object and leaves numbers as they are.
func canonical(t *testing.T, object string) string {
	t.Helper()
	var decoded any
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(decoded, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestScalingDownIsRepeatedWhenSomebodyElseWasFaster(t *testing.T) {
	s, client := newServer(t, map[string]string{onePath: osdOf("rook-ceph-osd-3", "u3", "3", "w1")})
	s.before = func(objects map[string]string) {
		objects[onePath] = strings.Replace(osdOf("rook-ceph-osd-3", "u3", "3", "w2"), `"7"`, `"8"`, 1)
		s.before = nil
	}
	if err := client.ScaleDown(t.Context(), "rook-ceph-osd-3", "u3"); err != nil {
		t.Fatal(err)
	}
	if after := s.object(onePath); !strings.Contains(after, `"w2"`) || !strings.Contains(after, `"replicas":0`) {
		t.Errorf("written %s", after)
	}
	s.before = func(objects map[string]string) {
		objects[onePath] = strings.Replace(objects[onePath], `"resourceVersion":"`, `"resourceVersion":"1`, 1)
	}
	s.mu.Lock()
	s.objects[onePath] = osdOf("rook-ceph-osd-3", "u3", "3", "w1")
	s.mu.Unlock()
	if err := client.ScaleDown(t.Context(), "rook-ceph-osd-3", "u3"); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("somebody else is always faster: %v", err)
	}
}

func TestADeploymentIsDeletedOnlyIfItIsTheOneThatWasMeant(t *testing.T) {
	s, client := newServer(t, map[string]string{onePath: osdOf("rook-ceph-osd-3", "u3", "3", "w1")})
	for _, change := range []func(uid string) error{
		func(uid string) error { return client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", uid) },
		func(uid string) error { return client.ScaleDown(t.Context(), "rook-ceph-osd-3", uid) },
	} {
		if err := change("other"); !errors.Is(err, kube.ErrOtherUID) {
			t.Errorf("another UID: %v", err)
		}
	}
	if err := client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", ""); err == nil {
		t.Error("deleted without a UID")
	}
	if err := client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", "u3"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.bodies[len(s.bodies)-1], `"propagationPolicy":"Background"`) {
		t.Errorf("options %s", s.bodies[len(s.bodies)-1])
	}
	if err := client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", "u3"); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if err := client.ScaleDown(t.Context(), "rook-ceph-osd-3", "u3"); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("scaled down when it is gone: %v", err)
	}
	s.failures["DELETE "+onePath] = 403
	err := client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", "u3")
	if !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), `needs verb "delete" on deployments;`) {
		t.Errorf("forbidden: %v", err)
	}
}
