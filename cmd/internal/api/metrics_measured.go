package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/replicatedhq/ekco/fsm"
)

// measured are the gauges of what machines measure of their things, by name. There are none of a
// machine that has measured nothing yet. It is used by the goroutine of [Metrics.State] only.
type measured map[string]*prometheus.GaugeVec

// measure takes over what the machines measure now; what they measured before is gone.
func (m *Metrics) measure(w *fsm.World) {
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

// vector returns the gauges of the measure's name, which are registered when there is the first.
func (m measured) vector(registry *prometheus.Registry, measure fsm.Measure) *prometheus.GaugeVec {
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
