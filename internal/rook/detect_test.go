package rook

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
)

const emptyCluster = `{"metadata":{"name":"rook-ceph","uid":"c1"},"spec":{"storage":{}}}`

func operatorOf(image string) string {
	return fmt.Sprintf(`{"metadata":{"name":"rook-ceph-operator"},"spec":{"template":{"spec":{"containers":[
		{"name":"sidecar","image":"x:v9.9.9"},{"name":"rook-ceph-operator","image":%q}]}}}}`, image)
}

func TestTheVersionIsReadFromTheOperatorsImage(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/rook/ceph:v1.10.8":            "v1.10.8",
		"kurlsh/rook-ceph:v1.0.4-14.2.21-2024":   "v1.0.4",
		"registry:5000/rook/ceph:1.4.9":          "v1.4.9",
		"rook/ceph:v1.5.9@sha256:0123":           "v1.5.9",
		"registry:5000/rook/ceph":                "unknown",
		"rook/ceph@sha256:0123":                  "unknown",
		"rook/ceph:latest":                       "unknown",
		"rook/ceph:v1.10":                        "unknown",
		"rook/ceph:v01.1.1":                      "unknown",
		"rook/ceph:v1.1.99999999999999999999999": "unknown",
		"":                                       "unknown",
	} {
		t.Run(image, func(t *testing.T) {
			_, client := newServer(t, map[string]string{
				clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf(image),
			})
			found, err := client.Detect(t.Context())
			if err != nil || !found.Present || found.Version.String() != want {
				t.Errorf("found %+v, %v", found, err)
			}
			if (found.Why == "") != found.Version.Known || (!found.Version.Known && !strings.Contains(found.Why, fmt.Sprintf("%q", image))) {
				t.Errorf("known %v, because %q", found.Version.Known, found.Why)
			}
		})
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	version, _ := versionOf("x:v1.10.2-rc.1")
	for _, test := range []struct {
		major, minor, patch int
		want                bool
	}{{1, 10, 2, true}, {1, 10, 3, false}, {1, 9, 9, true}, {2, 0, 0, false}, {0, 99, 0, true}, {1, 11, 0, false}} {
		if got := version.AtLeast(test.major, test.minor, test.patch); got != test.want {
			t.Errorf("%s is at least %d.%d.%d: %v", version, test.major, test.minor, test.patch, got)
		}
	}
	if (Version{}).AtLeast(0, 0, 0) {
		t.Error("an unknown version is at least something")
	}
}

func TestRookThatIsNotThereIsAbsentAndQuiet(t *testing.T) {
	_, client := newServer(t, nil)
	found, err := client.Detect(t.Context())
	if err != nil || found.Present || found.Why == "" {
		t.Errorf("nothing there: %+v, %v", found, err)
	}
	if !found.Gone {
		t.Errorf("without its namespace Rook is not gone: %+v", found)
	}
	s, client := newServer(t, map[string]string{namespacePath: `{"kind":"Namespace"}`})
	if found, err = client.Detect(t.Context()); err != nil || found.Present || found.Gone {
		t.Errorf("an empty namespace: %+v, %v", found, err)
	}
	s.failures["GET "+namespacePath] = 403
	if found, err = client.Detect(t.Context()); err != nil || found.Present || found.Gone {
		t.Errorf("a namespace that may not be seen: %+v, %v", found, err)
	}
	s, client = newServer(t, map[string]string{clusterPath: emptyCluster})
	found, err = client.Detect(t.Context())
	if err != nil || !found.Present || found.Version.Known || found.Why == "" {
		t.Errorf("no operator: %+v, %v", found, err)
	}
	s.failures["GET "+clusterPath] = 500
	if _, err = client.Detect(t.Context()); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("a broken API server: %v", err)
	}
}

const (
	groupPath     = "/apis/ceph.rook.io"
	namespacePath = "/api/v1/namespaces/rook-ceph"
)

func TestWithoutPermissionsForRookItIsAbsentOnlyIfThereIsNoSignOfIt(t *testing.T) {
	for name, test := range map[string]struct {
		group, namespace int
		absent           bool
		want             error
	}{
		"no API group":                        {group: 404, namespace: 403, absent: true},
		"neither group nor namespace":         {group: 404, namespace: 404, absent: true},
		"no namespace":                        {group: 200, namespace: 404, absent: true},
		"no namespace, no discovery":          {group: 403, namespace: 404, absent: true},
		"group and namespace":                 {group: 200, namespace: 200, want: kube.ErrForbidden},
		"group, and namespaces are forbidden": {group: 200, namespace: 403, want: kube.ErrForbidden},
		"a broken API server":                 {group: 500, namespace: 404, want: kube.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t, map[string]string{groupPath: `{"kind":"APIGroup"}`, namespacePath: `{"kind":"Namespace"}`})
			s.failures["GET "+clusterPath] = 403
			for path, code := range map[string]int{groupPath: test.group, namespacePath: test.namespace} {
				if code != 200 {
					s.failures["GET "+path] = code
				}
			}
			found, err := client.Detect(t.Context())
			if found.Present || !errors.Is(err, test.want) || test.absent != (found.Why != "") {
				t.Errorf("found %+v, %v", found, err)
			}
			if found.Gone != (test.absent && test.namespace == 404) {
				t.Errorf("gone: %+v", found)
			}
			if errors.Is(test.want, kube.ErrForbidden) && !strings.Contains(err.Error(), `needs verb "get" on cephclusters;`) {
				t.Errorf("the error does not name the permission: %v", err)
			}
		})
	}
}

func TestOSDsThatMayNotBeSeenAreNotTakenForNone(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: emptyCluster})
	s.failures["GET "+deploymentPath], s.failures["GET "+clusterPath] = 403, 403
	if _, err := client.OSDDeployments(t.Context()); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("Deployments: %v", err)
	}
	if _, err := client.StorageNode(t.Context(), "w1"); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("storage nodes: %v", err)
	}
}

func podOf(name, created, phase, ready, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"creationTimestamp":%q%s},"status":{"phase":%q,"conditions":[
		{"type":"Initialized","status":"True"},{"type":"Ready","status":%q}]}}`, name, created, more, phase, ready)
}

func TestTheNewestUsablePodIsTheToolsPod(t *testing.T) {
	list := func(pods ...string) string { return `{"items":[` + strings.Join(pods, ",") + `]}` }
	const old, recent = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
	_, client := newServer(t, map[string]string{
		podPath + "?app=rook-ceph-tools": list(
			podOf("running", old, "Running", "True", ""),
			podOf("on-a-lost-node", recent, "Running", "False", ""),
			podOf("going", recent, "Running", "True", `,"deletionTimestamp":"2026-02-01T00:00:00Z"`),
			podOf("pending", recent, "Pending", "False", ""),
			podOf("older", "2025-01-01T00:00:00Z", "Running", "True", ""),
		),
		podPath + "?app=rook-ceph-operator": list(podOf("operator", old, "Running", "True", "")),
	})
	for tag, want := range map[string]Pod{
		"v1.3.11": {"operator", "rook-ceph-operator"}, "v1.0.4-14.2.21": {"operator", "rook-ceph-operator"},
		"v1.4.0": {"running", "rook-ceph-tools"}, "v1.10.8": {"running", "rook-ceph-tools"}, "latest": {"running", "rook-ceph-tools"},
	} {
		version, _ := versionOf("rook/ceph:" + tag)
		if pod, err := client.ToolsPod(t.Context(), version); err != nil || pod != want {
			t.Errorf("%s: %+v, %v", tag, pod, err)
		}
	}
}

func TestWithoutAUsablePodTheAdministratorIsToldHowToStartOne(t *testing.T) {
	_, client := newServer(t, map[string]string{
		podPath + "?app=rook-ceph-tools": `{"items":[` + podOf("lost", "2026-01-01T00:00:00Z", "Running", "Unknown", "") + `]}`,
	})
	_, err := client.ToolsPod(t.Context(), Version{})
	want := "none of 1 pods with label app=rook-ceph-tools in namespace rook-ceph is running and ready; look at them with " +
		"kubectl -n rook-ceph describe pods -l app=rook-ceph-tools, or start one with kubectl -n rook-ceph scale deployment rook-ceph-tools --replicas=1"
	if !errors.Is(err, ErrNoToolsPod) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}
