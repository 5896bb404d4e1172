package monitoring

import (
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Meant returns the object of that name, with or without its namespace.
func (machine) Meant(s *fsm.State, name string) *fsm.Thing {
	var meant *fsm.Thing
	for _, t := range s.Things {
		if t.Machine() == Machine && named(t.Subject, name) && (meant == nil || t.FactsSeq > meant.FactsSeq) {
			meant = t
		}
	}
	return meant
}

func named(subject journal.Subject, name string) bool {
	return name != "" && (subject.Name == name || strings.HasSuffix(subject.Name, "/"+name))
}

// Nobody implements [fsm.Pausable].
func (machine) Nobody(name string) journal.Subject {
	if named(journal.MonitoringAlertmanager, name) {
		return journal.MonitoringAlertmanager
	}
	return journal.Subject{Kind: journal.MonitoringPrometheus.Kind, Name: name}
}

// Unknown implements [fsm.Pausable].
func (machine) Unknown(_ *fsm.State, name string) error {
	return fmt.Errorf("%w: %q is neither Prometheus monitoring/k8s nor Alertmanager monitoring/prometheus-alertmanager, or it is not there", fsm.ErrUnknown, name)
}
