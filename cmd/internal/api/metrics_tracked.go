package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/journal"
)

// stepBuckets go from 10 ms to 45 min.
var stepBuckets = prometheus.ExponentialBuckets(0.01, 4, 10)

// callBuckets go from 5 ms, a fast etcd, to 20 s, a Ceph that does not answer.
var callBuckets = prometheus.ExponentialBuckets(0.005, 2, 13)

// unknown is the label value if the events do not have the information.
const unknown = "unknown"

// openActionData keeps data from earlier events of open actions, which measurements at later events need.
type openActionData struct {
	kinds map[string]journal.ActionKind
	// does has what each step does, by action and step: the field Does of the plan. As a label of the metrics of steps,
	// it has few values.
	does map[string]map[string]string
	// steps has the times of the events step.started, by action and step.
	steps map[string]map[string]time.Time
}

func newTracked() openActionData {
	return openActionData{
		kinds: make(map[string]journal.ActionKind),
		does:  make(map[string]map[string]string),
		steps: make(map[string]map[string]time.Time),
	}
}

// plan stores the Does of the steps of a planned action.
func (t openActionData) plan(action string, plan journal.Plan) {
	if t.does[action] != nil || len(plan.Steps) == 0 {
		return
	}
	does := make(map[string]string, len(plan.Steps)+len(plan.Undo))
	for _, step := range slices.Concat(plan.Steps, plan.Undo) {
		does[step.ID] = step.Does
	}
	t.does[action] = does
}

// doesOf returns the Does of a step.
func (t openActionData) doesOf(event journal.Event, step string) string {
	return cmp.Or(t.does[event.Action][step], unknown)
}

func (t openActionData) beginStep(event journal.Event, step string) {
	if t.steps[event.Action] == nil {
		t.steps[event.Action] = make(map[string]time.Time)
	}
	t.steps[event.Action][step] = event.Time
}

func (t openActionData) endStep(event journal.Event, step string) (time.Duration, bool) {
	began, known := t.steps[event.Action][step]
	delete(t.steps[event.Action], step)
	return max(0, event.Time.Sub(began)), known
}

// moveClock adjusts the times to a clock that jumped.
func (t openActionData) moveClock(by time.Duration) {
	for _, steps := range t.steps {
		for step, began := range steps {
			steps[step] = began.Add(by)
		}
	}
}

// close removes an action and returns its kind.
func (t openActionData) close(action string) journal.ActionKind {
	kind, known := t.kinds[action]
	delete(t.kinds, action)
	delete(t.does, action)
	delete(t.steps, action)
	if !known {
		return unknown
	}
	return kind
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
