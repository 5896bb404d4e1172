package envoy

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine, Kind what its things are called as subjects.
const (
	Machine = "envoy"
	Kind    = "Envoy"
)

// The states of Envoy on a node.
const (
	// Unready: its pod runs and is not ready.
	Unready journal.State = "Unready"
	// NodeLost: so it was when the node was lost.
	NodeLost journal.State = "NodeLost"
	// Restarting: a restart-envoy action is open, or has deleted the pod that is yet to be
	// seen gone.
	Restarting journal.State = "Restarting"
	// Ready: no pod of it is known to be unready.
	Ready journal.State = "Ready"
)

// Envoy is what the machine keeps of Envoy on a node.
type Envoy struct {
	// Pod is the one that is unready.
	Pod journal.EnvoyPod `json:"pod"`
	// SeenAt is when EKCO saw it so, by EKCO's clock. How long it is unready counts
	// from then.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

// Policy is the part of the configuration that decisions about Envoy depend on.
type Policy struct {
	// Restart switches automatic actions.
	Restart bool
	// After is how long a pod must be unready.
	After time.Duration
}

// policyOf returns the policy of Envoy. One that says nothing of it starts nothing.
func policyOf(p fsm.Policy) Policy {
	of, _ := p.Of[Machine].(Policy)
	return of
}

// Known returns the pods that the journal says are unready, by the names of the things.
func Known(s *fsm.State) map[string]journal.EnvoyPod {
	known := map[string]journal.EnvoyPod{}
	for _, t := range s.Things {
		if t.Machine() == Machine && observed(t) {
			known[t.Name] = of(t).Pod
		}
	}
	return known
}

func of(t *fsm.Thing) *Envoy { return t.Data.(*Envoy) }

// observed reports whether a pod is known to be unready.
func observed(t *fsm.Thing) bool { return t.FactsSeq != 0 && t.GoneSeq == 0 }
