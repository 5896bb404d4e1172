package monitoring_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/monitoring"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// watching runs a test with both sources and what is installed.
func watching(t *testing.T, known map[string]journal.MonitoringFacts, test func(*observerstest.Bench, *kubesim.Objects)) {
	t.Helper()
	objects := kubesim.NewObjects()
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			is := monitoring.Object(objects)
			return observers.PollEach([]journal.Subject{journal.MonitoringPrometheus, journal.MonitoringAlertmanager}, is.Read,
				observers.PolledOne[journal.MonitoringFacts]{Machine: "monitoring", UID: is.UID, Known: known})
		}
	}, func(b *observerstest.Bench) { test(b, objects) })
}

var prometheus, alertmanager = monitoring.Ref(journal.MonitoringPrometheus), monitoring.Ref(journal.MonitoringAlertmanager)

func TestBothAreReadByNameAndOnlyWhatIsAskedOfThemIsAFact(t *testing.T) {
	watching(t, nil, func(b *observerstest.Bench, objects *kubesim.Objects) {
		b.Pass(time.Hour)
		b.WroteThings()
		if n := b.Logged("EKCO does not observe it"); n != 2 {
			b.Errorf("absence was said %d times:\n%s", n, b.Said)
		}
		objects.Put(prometheus, `{"spec":{"replicas":2}}`)
		b.Pass(70 * time.Second)
		b.WroteThings(`Prometheus monitoring/k8s uid-k8s-1 {"generation":1,"replicas":2}`)
		objects.Put(alertmanager, `{"spec":{}}`)
		b.Pass(70 * time.Second)
		b.WroteThings(`Alertmanager monitoring/prometheus-alertmanager uid-prometheus-alertmanager-2 {"generation":1,"replicas":1}`)
		objects.Edit(prometheus, func(object map[string]any) { object["status"] = map[string]any{"availableReplicas": 1} })
		b.Pass(time.Hour)
		b.WroteThings()
		objects.Remove(prometheus)
		objects.Put(prometheus, `{"spec":{"replicas":3}}`)
		b.Pass(70 * time.Second)
		b.WroteThings(`Prometheus monitoring/k8s uid-k8s-1 gone: replaced by uid uid-k8s-3`, `Prometheus monitoring/k8s uid-k8s-3 {"generation":1,"replicas":3}`)
	})
}

func TestOneThatCannotBeReadKeepsNothingFromTheOther(t *testing.T) {
	known := map[string]journal.MonitoringFacts{"monitoring/k8s": {UID: "uid-k8s-1", Generation: 1, Replicas: 2}}
	watching(t, known, func(b *observerstest.Bench, objects *kubesim.Objects) {
		b.WroteThings(`Prometheus monitoring/k8s uid-k8s-1 gone: absent at start`) // at the start
		objects.Forbid("get prometheuses")
		objects.Put(prometheus, `{"spec":{"replicas":2}}`)
		objects.Put(alertmanager, `{"spec":{"replicas":3}}`)
		b.Pass(70 * time.Second)
		b.WroteThings(`Alertmanager monitoring/prometheus-alertmanager uid-prometheus-alertmanager-2 {"generation":1,"replicas":3}`)
		objects.Allow("get prometheuses")
		b.Pass(70 * time.Second)
		b.WroteThings(`Prometheus monitoring/k8s uid-k8s-1 {"generation":1,"replicas":2}`)
	})
}
