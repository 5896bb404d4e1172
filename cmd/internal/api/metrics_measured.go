package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/fsm"
)

// measureGauges has the gauges for the measures of machines, by name. A gauge exists from its first value on. Only the
// goroutine that calls [Metrics.State] uses it.
type measureGauges map[string]*prometheus.GaugeVec

// replaceMeasures replaces all values with the present ones.
func (m *Metrics) replaceMeasures(w *fsm.World) {
	for _, vector := range m.measured {
		vector.Reset()
	}
	for _, thing := range w.Things {
		thing.Measures(w, func(measure fsm.Measure) {
			labels := []string{thing.Kind + " " + thing.Name}
			if measure.Label != "" {
				labels = append(labels, measure.Of)
			}
			m.measured.vector(m.registry, measure).WithLabelValues(labels...).Set(measure.Value)
		})
	}
}

// vector returns the gauge of the measure, and registers it if it is new.
func (m measureGauges) vector(registry *prometheus.Registry, measure fsm.Measure) *prometheus.GaugeVec {
	if vector := m[measure.Name]; vector != nil {
		return vector
	}
	labels := []string{"object"}
	if measure.Label != "" {
		labels = append(labels, measure.Label)
	}
	m[measure.Name] = gauges("ekco_"+measure.Name, measure.Help, labels...)
	registry.MustRegister(m[measure.Name])
	return m[measure.Name]
}
