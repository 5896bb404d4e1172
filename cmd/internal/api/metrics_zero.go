package api

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
)

// labelled is a gauge of a vector, by its labels.
type labelled struct {
	vector *prometheus.GaugeVec
	labels []string
}

// zeroes gives every gauge whose labels are known beforehand its 0, so that a rule for
// alerts finds it.
func (m *Metrics) zeroes(s *fsm.State) {
	if m.known == nil {
		m.known = m.knownOf(s)
	}
	for _, gauge := range m.known {
		gauge.vector.WithLabelValues(gauge.labels...).Set(0)
	}
}

// holdsOfTheRunner are what may hold an action of any kind.
var holdsOfTheRunner = []string{actions.HoldPlan, actions.HoldAnswer, actions.HoldReadable, actions.HoldNextAttempt, actions.HoldDomains, actions.HoldItems}

// knownOf lists what the machines, kinds and rules of a state can be counted by. They are
// the same for as long as EKCO runs.
func (m *Metrics) knownOf(s *fsm.State) []labelled {
	known := []labelled{}
	for machine, state := range s.MachineStates() {
		known = append(known, labelled{m.machines, []string{machine, string(state)}})
	}
	for kind, rule := range s.KindRules() {
		known = append(known, labelled{m.refusals, []string{string(kind), rule}})
	}
	for kind := range s.Kinds() {
		for _, status := range fsm.ActionStatuses() {
			known = append(known, labelled{m.openActions, []string{string(kind), string(status)}})
		}
	}
	for _, name := range slices.Concat(m.checks, holdsOfTheRunner, s.RuleNames()) {
		known = append(known, labelled{m.holds, []string{name}})
	}
	return known
}
