package envoy

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine, Kind the kind of its subjects.
const (
	Machine = "envoy"
	Kind    = "Envoy"
)

// The states of Envoy on a node.
const (
	// Unready: its pod runs and is not ready.
	Unready journal.State = "Unready"
	// NodeLost: its pod was unready when the node was lost.
	NodeLost journal.State = "NodeLost"
	// Restarting: a restart-envoy action is open, or EKCO has not yet seen that the pod which it deleted is gone.
	Restarting journal.State = "Restarting"
	// Ready: no pod of it is known to be unready.
	Ready journal.State = "Ready"
)

// Envoy is what the machine keeps of Envoy on a node.
type Envoy struct {
	// Pod is the unready pod.
	Pod journal.EnvoyPod `json:"pod"`
	// SeenAt is when EKCO saw it unready, by EKCO's clock. The unready time counts from then.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

// Policy is the part of the configuration that decisions about Envoy depend on.
type Policy struct {
	// Restart enables automatic actions.
	Restart bool
	// After is how long a pod must be unready.
	After time.Duration
}

// policyOf returns the policy for Envoy. A missing one starts nothing.
func policyOf(p fsm.Policy) Policy {
	of, _ := p.Of[Machine].(Policy)
	return of
}

// Known returns the pods that are unready according to the journal, by the names of the things.
func Known(s *fsm.State) map[string]journal.EnvoyPod {
	known := map[string]journal.EnvoyPod{}
	for _, t := range s.Things {
		if t.Machine() == Machine && t.Exists() {
			known[t.Name] = of(t).Pod
		}
	}
	return known
}

func of(t *fsm.Thing) *Envoy { return t.Data.(*Envoy) }
