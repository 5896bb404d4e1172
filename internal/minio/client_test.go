package minio_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

func installed() (*miniosim.MinIO, *minio.Client) {
	objects := kubesim.NewObjects()
	m := miniosim.Install(objects, "a", "b", "c")
	return m, m.Client(objects)
}

var set = minio.StatefulSetRef(miniosim.Namespace)

func TestWhatThereIsIsReadByName(t *testing.T) {
	m, client := installed()
	first := m.Run(0, miniosim.Pod{Node: "a"})
	m.Run(1, miniosim.Pod{Message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had volume node affinity conflict."})
	m.Run(2, miniosim.Pod{Message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."})
	m.Run(3, miniosim.Pod{Message: "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity."})
	m.Run(5, miniosim.Pod{Node: "b"})
	m.Edit(minio.PodRef(miniosim.Namespace, 5), func(object map[string]any) {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	got, err := client.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, pod := range got.Pods {
		states = append(states, strings.TrimSpace(pod.Name+" "+string(pod.State)+" "+pod.Node))
	}
	want := []string{"ha-minio-0 runs a", "ha-minio-1 lacks its volume", "ha-minio-2 waits", "ha-minio-3 lacks its volume", "ha-minio-5 ends b"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if got.UID != m.UID || got.Replicas != 0 || got.Desired != 6 || got.Deployment == "" || got.Service != journal.MinioServiceSingle || got.Pods[0].UID != first {
		t.Errorf("read %+v", got)
	}
	m.Remove(minio.DeploymentRef(miniosim.Namespace))
	for selector, want := range map[string]journal.MinioService{
		`{"app":"ha-minio"}`:              journal.MinioServiceHA,
		`{"doesnotexist":"doesnotexist"}`: journal.MinioServiceDisabled,
		`{"app":"does-not-exist"}`:        journal.MinioServiceInstaller,
		`{"app":"minio","x":"y"}`:         journal.MinioServiceOther,
		`{}`:                              journal.MinioServiceOther,
		`{"app":"minio-migrate-fs-backend-original"}`: journal.MinioServiceOther,
	} {
		m.Point(selector)
		if got, err := client.Read(t.Context()); err != nil || got.Service != want || got.Deployment != "" {
			t.Errorf("%s: %v: read %+v", selector, err, got)
		}
	}
	m.Remove(minio.ServiceRef(miniosim.Namespace))
	if got, err := client.Read(t.Context()); err != nil || got.Service != "" {
		t.Errorf("no Service: %v: read %+v", err, got)
	}
}

func TestAStatefulSetThatDoesNotAskForReplicasIsAsGoodAsNone(t *testing.T) {
	m, client := installed()
	annotate := func(annotations map[string]any) error {
		m.Edit(set, func(object map[string]any) { object["metadata"].(map[string]any)["annotations"] = annotations })
		_, err := client.Read(t.Context())
		return err
	}
	if err := annotate(nil); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("no annotation: %v", err)
	}
	for _, text := range []string{"six", "", "-1"} {
		if err := annotate(map[string]any{"kurl.sh/desired-scale": text}); err == nil || errors.Is(err, kube.ErrNotFound) || !strings.Contains(err.Error(), `kurl.sh/desired-scale is "`+text+`"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	m.Remove(set)
	if _, err := client.Read(t.Context()); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
}

func TestAMillionReplicasAreNotLookedForOneByOne(t *testing.T) {
	for name, slip := range map[string]func(object map[string]any){
		"annotated": func(object map[string]any) {
			object["metadata"].(map[string]any)["annotations"] = map[string]any{"kurl.sh/desired-scale": "1000000"}
		},
		"scaled": func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 1_000_000 },
	} {
		t.Run(name, func(t *testing.T) {
			m, client := installed()
			m.Edit(set, slip)
			before := m.Calls("get pods")
			if _, err := client.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "at most 64") || errors.Is(err, kube.ErrNotFound) {
				t.Errorf("read: %v", err)
			}
			if asked := m.Calls("get pods") - before; asked > 100 {
				t.Errorf("%d pods were asked for", asked)
			}
		})
	}
}

func TestReplicasAreSetThroughTheScaleOfTheStatefulSetThatWasMeant(t *testing.T) {
	m, client := installed()
	others := 0
	m.BeforeEffect = func(string) {
		if others++; others < 3 {
			m.Edit(set, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = others })
		}
	}
	got, err := client.Scale(t.Context(), m.UID, 6)
	if err != nil || got.Replicas != 6 || m.Calls("update statefulsets/scale") != 3 || m.Calls("update statefulsets") != 0 {
		t.Errorf("%v: scaled to %+v with %d updates", err, got, m.Calls("update statefulsets/scale"))
	}
	if _, err := client.Scale(t.Context(), m.UID, 6); err != nil || m.Calls("update statefulsets/scale") != 3 {
		t.Errorf("done again: %v", err)
	}
	if _, err := client.Scale(t.Context(), "another", 6); !errors.Is(err, kube.ErrOtherUID) {
		t.Errorf("another: %v", err)
	}
	m.OnWrite = func(_ kube.Ref, object map[string]any) { object["spec"].(map[string]any)["replicas"] = 1 }
	if _, err := client.Scale(t.Context(), m.UID, 5); err == nil || !strings.Contains(err.Error(), "webhook") {
		t.Errorf("a webhook: %v", err)
	}
}

func TestWhatIsLackingIsSaidWithTheReasonsOfPodsAndServers(t *testing.T) {
	m, client := installed()
	lacks := func(want string) {
		t.Helper()
		if _, got, err := client.Unready(t.Context()); err != nil || got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
	m.Edit(set, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 2 })
	lacks("the controller of StatefulSets has not seen the change yet; ha-minio-0: does not exist; ha-minio-1: does not exist")
	m.Run(0, miniosim.Pod{Node: "a"})
	m.Run(1, miniosim.Pod{Message: "0/3 nodes are available"})
	m.Reconcile()
	lacks("1 of 2 replicas are ready; ha-minio-1: Pending: Unschedulable: 0/3 nodes are available")
	m.Put(minio.PodRef(miniosim.Namespace, 1), `{"spec":{"nodeName":"b"},"status":{"phase":"Pending","containerStatuses":[{"name":"minio","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`)
	lacks("1 of 2 replicas are ready; ha-minio-1: Pending: container minio: ImagePullBackOff on node b")
	m.Put(minio.PodRef(miniosim.Namespace, 1), `{"spec":{"nodeName":"b"},"status":{"phase":"Running"}}`)
	lacks("1 of 2 replicas are ready; ha-minio-1: Running, not ready on node b")
	m.Run(1, miniosim.Pod{Node: "b"})
	m.Reconcile()
	m.Silence(1, true)
	lacks("MinIO is not healthy: ha-minio-0: fewer drives work than the 4 that a write needs (HTTP status 503); " +
		"ha-minio-1: ask MinIO at ha-minio-1 for its health: connection refused")
	m.Edit(set, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 6 })
	m.Reconcile()
	lacks("")
	m.Edit(set, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 0 })
	for i := range 6 {
		m.Remove(minio.PodRef(miniosim.Namespace, i))
	}
	m.Reconcile()
	lacks("no replica of MinIO runs, so none can report its health")
}

// TestAPodThatNothingMadeHasNoSuccessor: who deletes it has none at all.
func TestAPodThatNothingMadeHasNoSuccessor(t *testing.T) {
	_, client := installed()
	no, err := client.Successor(t.Context(), minio.SinglePod{Name: "minio-by-hand", Node: "a"})
	if err != nil || no.Cause != "no controller" {
		t.Errorf("%+v, %v", no, err)
	}
}
