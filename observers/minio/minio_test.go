package minio_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	client "github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/minio"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// observed runs a test with MinIO's sources alone.
func observed(t *testing.T, m *miniosim.MinIO, known map[string]journal.MinioFacts, test func(*observerstest.Bench)) {
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return minio.New(minio.Options{
				API: m.Client(m.Objects), Namespace: miniosim.Namespace, Known: known,
				Pods: b.PodsLabelled(miniosim.Namespace, client.Label, client.App),
			})
		}
	}, test)
}

// wrote checks what was written since the last time.
func wrote(b *observerstest.Bench, want ...string) {
	b.Helper()
	var got []string
	for _, draft := range b.Paper.Drafts() {
		text := draft.Subject.Kind + " " + draft.Subject.Name
		switch p := draft.Payload.(type) {
		case journal.ThingObserved:
			text += " " + string(p.Facts)
		case journal.ThingGone:
			text += " is gone: " + p.Reason
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("written (-want +got):\n%s", diff)
	}
}

func pod(i int) *corev1.Pod {
	return observerstest.Pod(fmt.Sprintf("%s/ha-minio-%d", miniosim.Namespace, i), fmt.Sprint(i), "a", func(p *corev1.Pod) {
		p.Labels = map[string]string{client.Label: client.App}
	})
}

func TestMinIOIsReadNowAndThenAndAtOnceWhenAPodChanges(t *testing.T) {
	m := miniosim.Install(kubesim.NewObjects(), "a", "b")
	observed(t, m, nil, func(b *observerstest.Bench) {
		facts := func(generation, replicas int, pods string) string {
			deployment := m.Object(client.DeploymentRef(miniosim.Namespace))["metadata"].(map[string]any)["uid"]
			return fmt.Sprintf(`MinIO minio/ha-minio {"generation":%d,"replicas":%d,"desired":6,"deployment":"%s","service":"minio"%s}`, generation, replicas, deployment, pods)
		}
		wrote(b, facts(1, 0, ""))
		reads := m.Calls("get statefulsets")
		b.Pass(time.Hour)
		wrote(b)
		if n := m.Calls("get statefulsets") - reads; n < 50 || n > 70 {
			t.Errorf("it was read %d times in an hour", n)
		}
		m.Edit(client.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 1 })
		uid := m.Run(0, miniosim.Pod{Node: "a"})
		b.Put(pod(0))
		b.Settle()
		wrote(b, facts(2, 1, `,"pods":[{"name":"ha-minio-0","uid":"`+uid+`","node":"a","state":"runs"}],"health":"not healthy: too few of its drives are there to write"`))
		m.Remove(client.PodRef(miniosim.Namespace, 0))
		b.Remove(pod(0))
		b.Settle()
		wrote(b, facts(2, 1, ""))
	})
}

func TestWithoutTheStatefulSetOrItsAnnotationNothingIsToldAndThatOnce(t *testing.T) {
	for name, take := range map[string]func(*miniosim.MinIO){
		"no StatefulSet": func(m *miniosim.MinIO) { m.Remove(client.StatefulSetRef(miniosim.Namespace)) },
		"no annotation": func(m *miniosim.MinIO) {
			m.Edit(client.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { delete(object["metadata"].(map[string]any), "annotations") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := miniosim.Install(kubesim.NewObjects(), "a")
			known := map[string]journal.MinioFacts{"minio/ha-minio": {UID: m.UID, Generation: 1, Desired: 6}, "other/ha-minio": {UID: "other"}}
			take(m)
			observed(t, m, known, func(b *observerstest.Bench) {
				wrote(b, "MinIO minio/ha-minio is gone: absent at start", "MinIO other/ha-minio is gone: absent at start")
				b.Pass(time.Hour)
				wrote(b)
				if n := b.Logged("level=WARN"); n != 0 {
					t.Errorf("%d warnings:\n%s", n, b.Said)
				}
			})
		})
	}
}

func TestWhatCannotBeReadChangesNothing(t *testing.T) {
	m := miniosim.Install(kubesim.NewObjects(), "a")
	observed(t, m, nil, func(b *observerstest.Bench) {
		b.Paper.Drafts()
		m.Edit(client.StatefulSetRef(miniosim.Namespace), func(object map[string]any) {
			object["metadata"].(map[string]any)["annotations"] = map[string]any{"kurl.sh/desired-scale": "six"}
		})
		b.Pass(10 * time.Minute)
		wrote(b)
		if !strings.Contains(b.Said.String(), `kurl.sh/desired-scale`) {
			t.Errorf("nothing is said of it:\n%s", b.Said)
		}
	})
}

func TestSwitchedOffWhatIsKnownIsToldAsGone(t *testing.T) {
	known := map[string]journal.MinioFacts{"minio/ha-minio": {UID: "1"}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source { return []observers.Source{minio.Off(known, "enable_ha_minio is off")} }
	}, func(b *observerstest.Bench) {
		wrote(b, "MinIO minio/ha-minio is gone: enable_ha_minio is off")
		b.Pass(time.Hour)
		wrote(b)
	})
}
