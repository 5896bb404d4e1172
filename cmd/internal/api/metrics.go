package api

import (
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/journal"
)

// Metrics has EKCO's collectors in a registry of their own. Its methods are safe for concurrent use, except that only
// one goroutine may call Folded and State.
type Metrics struct {
	registry *prometheus.Registry
	// attention is a separate registry, because its collector waits for the goroutine that calls State, and that
	// goroutine waits for stateLock.
	attention *prometheus.Registry

	machines       *prometheus.GaugeVec
	openActions    *prometheus.GaugeVec
	actionsEnded   *prometheus.CounterVec
	stepSeconds    *prometheus.HistogramVec
	stepFailures   *prometheus.CounterVec
	holds          *prometheus.GaugeVec
	refusals       *prometheus.GaugeVec
	pauses         prometheus.Gauge
	safeMode       prometheus.Gauge
	sequence       prometheus.Gauge
	bytes          prometheus.Gauge
	events         prometheus.Counter
	appendSeconds  prometheus.Histogram
	appendFailures prometheus.Counter
	lag            *prometheus.HistogramVec
	mirrorFailures prometheus.Counter
	requests       *prometheus.CounterVec
	cephSeconds    *prometheus.HistogramVec
	etcdSeconds    *prometheus.HistogramVec
	clockJumps     prometheus.Counter
	clockSkew      prometheus.Gauge
	apiUp          prometheus.Gauge

	measured measureGauges
	tracked  openActionData
	// known has the gauges that exist from the start. stateLock guards it.
	known []labelledGauge
	// checks has the names of the preflights that may hold an action.
	checks []string
	// stateLock is locked during changes, so that a scrape sees a consistent state.
	stateLock sync.Mutex
}

// NewMetrics returns the collectors, together with the collectors of the Go runtime and of the process.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry:       prometheus.NewRegistry(),
		attention:      prometheus.NewRegistry(),
		machines:       gauges("ekco_machines", "Machines by kind and state.", "kind", "state"),
		openActions:    gauges("ekco_open_actions", "Open actions by kind and status.", "kind", "status"),
		actionsEnded:   counters("ekco_actions_total", "Actions that ended, by kind and outcome.", "kind", "outcome"),
		stepSeconds:    histograms("ekco_step_duration_seconds", "Time from step.started to step.done, by what the step does.", stepBuckets, "step"),
		stepFailures:   counters("ekco_step_failures_total", "Failed attempts, by what the step does.", "step"),
		holds:          gauges("ekco_holds", "Holds in force, by preflight.", "preflight"),
		refusals:       gauges("ekco_refusals", "Policy's refusals in force, by kind of action and rule.", "kind", "rule"),
		pauses:         gauge("ekco_pauses", "Pauses in force."),
		safeMode:       gauge("ekco_safe_mode", "1 while EKCO only observes because the journal was damaged, or lost its newest events, and is not accepted yet."),
		sequence:       gauge("ekco_journal_sequence", "Sequence number of the last event."),
		bytes:          gauge("ekco_journal_bytes", "Size of the journal's file."),
		events:         counter("ekco_journal_events_total", "Events appended since the start."),
		appendSeconds:  histogram("ekco_journal_append_seconds", "Time of one durable append.", prometheus.ExponentialBuckets(0.0002, 2, 14)),
		appendFailures: counter("ekco_journal_append_failures_total", "Appends that failed."),
		lag:            histograms("ekco_observation_lag_seconds", "Time from a change in the cluster, as the API dates it, to its record in the journal, by resource.", prometheus.ExponentialBuckets(0.05, 2, 14), "resource"),
		mirrorFailures: counter("ekco_mirror_failures_total", "Failed writes of the mirror of open actions."),
		requests:       counters("ekco_kubernetes_requests_total", "Requests to the Kubernetes API, by verb, resource and status code; code \"error\" for those without an answer.", "verb", "resource", "code"),
		cephSeconds:    histograms("ekco_ceph_command_duration_seconds", "Time of one ceph command, with the exec into its pod, by command and result.", callBuckets, "command", "result"),
		etcdSeconds:    histograms("ekco_etcd_call_duration_seconds", "Time of one call to the members of etcd, by call and result.", callBuckets, "call", "result"),
		clockJumps:     counter("ekco_clock_jumps_total", "Times that the clock of EKCO's machine was set, or the machine slept."),
		clockSkew:      gauge("ekco_clock_skew_seconds", "How far the Kubernetes API's clock was ahead of EKCO's when EKCO started; 0 if that is unknown, or the clock was set since."),
		apiUp:          gauge("ekco_api_up", "1 while the Kubernetes API answers, as far as EKCO knows."),
		tracked:        newTracked(), measured: measureGauges{},
	}
	build := gauges("ekco_build_info", "Always 1; says which EKCO this is.", "version", "git_sha")
	info := version.Get()
	build.WithLabelValues(info.Version, info.GitSHA).Set(1)
	m.registry.MustRegister(build, m.machines, m.openActions, m.actionsEnded, m.stepSeconds, m.stepFailures, m.holds,
		m.refusals, m.pauses, m.safeMode, m.sequence, m.bytes, m.events, m.appendSeconds, m.appendFailures, m.lag,
		m.mirrorFailures, m.requests, m.cephSeconds, m.etcdSeconds, m.clockJumps, m.clockSkew, m.apiUp,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// MayHold sets the names of the preflights for which holds are counted, so that their metrics exist before the first
// hold.
func (m *Metrics) MayHold(preflights iter.Seq[string]) {
	m.stateLock.Lock()
	defer m.stateLock.Unlock()
	m.checks, m.known = slices.Collect(preflights), nil
}

// Gatherer returns the metrics that /metrics serves.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{m.attention, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		m.stateLock.Lock()
		defer m.stateLock.Unlock()
		return m.registry.Gather()
	})}
}

// Appended counts one append.
func (m *Metrics) Appended(events int, took time.Duration, err error) {
	if err != nil {
		m.appendFailures.Inc()
		return
	}
	m.events.Add(float64(events))
	m.appendSeconds.Observe(took.Seconds())
}

// JournalSize records the size of the journal's file in bytes.
func (m *Metrics) JournalSize(bytes int64) { m.bytes.Set(float64(bytes)) }

// Observed records the time from a change to its record in the journal.
func (m *Metrics) Observed(resource string, lag time.Duration) {
	m.lag.WithLabelValues(resource).Observe(lag.Seconds())
}

// MirrorFailed counts one failed write of the mirror.
func (m *Metrics) MirrorFailed(error) { m.mirrorFailures.Inc() }

// Folded counts one event. It must be called once for each new event.
func (m *Metrics) Folded(event journal.Decoded) {
	m.sequence.Set(float64(event.Seq))
	switch p := event.Body.(type) {
	case *journal.ActionRequested:
		m.tracked.kinds[event.Action] = p.Kind
	case *journal.ActionAdopted:
		m.tracked.kinds[event.Action] = p.Record.Kind
		m.tracked.plan(event.Action, p.Record.Plan)
	case *journal.ActionPlanned:
		m.tracked.plan(event.Action, p.Plan)
	case *journal.StepStarted:
		m.tracked.beginStep(event.Event, p.Step)
	case *journal.StepFailed:
		if p.CutShort {
			break // a cancelled step has not failed
		}
		m.stepFailures.WithLabelValues(m.tracked.doesOf(event.Event, p.Step)).Inc()
	case *journal.StepDone:
		if took, known := m.tracked.endStep(event.Event, p.Step); known && !p.DryRun {
			m.stepSeconds.WithLabelValues(m.tracked.doesOf(event.Event, p.Step)).Observe(took.Seconds())
		}
	case *journal.ClockJumped:
		m.clockJumps.Inc()
		m.tracked.moveClock(time.Duration(p.By))
	case *journal.ActionEnded:
		m.actionsEnded.WithLabelValues(string(m.tracked.close(event.Action)), string(p.Outcome)).Inc()
	}
}

// State updates the gauges from the present state.
func (m *Metrics) State(s *fsm.World) {
	m.stateLock.Lock()
	defer m.stateLock.Unlock()
	for _, vector := range []*prometheus.GaugeVec{m.machines, m.openActions, m.holds, m.refusals} {
		vector.Reset()
	}
	m.setToZero(s.State)
	m.replaceMeasures(s)
	for _, thing := range s.Things {
		m.machines.WithLabelValues(thing.Machine(), string(thing.State)).Inc()
	}
	for id, action := range s.Actions {
		if action.Status == fsm.Ended {
			continue
		}
		m.tracked.kinds[id] = action.Kind
		m.tracked.plan(id, action.Plan)
		m.openActions.WithLabelValues(string(action.Kind), string(action.Status)).Inc()
		for _, hold := range action.Holds {
			m.holds.WithLabelValues(hold.Preflight).Inc()
		}
	}
	for _, refusal := range s.Refusals {
		m.refusals.WithLabelValues(string(refusal.Kind), refusal.Rule).Inc()
	}
	m.pauses.Set(float64(len(s.Pauses)))
	m.safeMode.Set(0)
	if s.Journal.SafeMode() {
		m.safeMode.Set(1)
	}
	m.apiUp.Set(0)
	if s.API.LostAt.IsZero() && !s.API.SettlingFrom.IsZero() {
		m.apiUp.Set(1)
	}
	m.clockSkew.Set(0)
	if skew := s.Clock.Skew; skew != nil {
		m.clockSkew.Set(time.Duration(*skew).Seconds())
	}
	m.sequence.Set(float64(s.Seq))
}

// Requested counts a request to the Kubernetes API by its RBAC verb, its resource, and the status code of the answer (0
// without an answer).
func (m *Metrics) Requested(verb, resource string, code int) {
	label := "error"
	if code != 0 {
		label = strconv.Itoa(code)
	}
	m.requests.WithLabelValues(verb, resource, label).Inc()
}

// CephRan records the time of one ceph command.
func (m *Metrics) CephRan(kind string, took time.Duration, err error) {
	m.cephSeconds.WithLabelValues(kind, resultLabel(err)).Observe(took.Seconds())
}

// EtcdAnswered records the time of one call to etcd.
func (m *Metrics) EtcdAnswered(call string, took time.Duration, err error) {
	m.etcdSeconds.WithLabelValues(call, resultLabel(err)).Observe(took.Seconds())
}

func resultLabel(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}
