package api

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
)

// labelledGauge is one gauge of a vector, with its labels.
type labelledGauge struct {
	vector *prometheus.GaugeVec
	labels []string
}

// setToZero sets every gauge with known labels to 0, so that alerting rules find the metric.
func (m *Metrics) setToZero(s *fsm.State) {
	if m.known == nil {
		m.known = m.constantGauges(s)
	}
	for _, gauge := range m.known {
		gauge.vector.WithLabelValues(gauge.labels...).Set(0)
	}
}

// holdsOfTheRunner lists the holds that actions of every kind can have.
var holdsOfTheRunner = []string{actions.HoldPlan, actions.HoldAnswer, actions.HoldReadable, actions.HoldNextAttempt, actions.HoldDomains, actions.HoldItems}

// constantGauges lists the gauges for the machines, kinds and rules, which do not change while EKCO runs.
func (m *Metrics) constantGauges(s *fsm.State) []labelledGauge {
	known := []labelledGauge{}
	for machine, state := range s.MachineStates() {
		known = append(known, labelledGauge{m.machines, []string{machine, string(state)}})
	}
	for kind, rule := range s.KindRules() {
		known = append(known, labelledGauge{m.refusals, []string{string(kind), rule}})
	}
	for kind := range s.Kinds() {
		for _, status := range fsm.ActionStatuses() {
			known = append(known, labelledGauge{m.openActions, []string{string(kind), string(status)}})
		}
	}
	for _, name := range slices.Concat(m.checks, holdsOfTheRunner, s.RuleNames()) {
		known = append(known, labelledGauge{m.holds, []string{name}})
	}
	return known
}
