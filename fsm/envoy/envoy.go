package envoy

import (
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine. Kind is the kind of its subjects.
const (
	Machine = "envoy"
	Kind    = "Envoy"
)

// The states of Envoy on a node.
const (
	// Unready: the pod runs and is not ready.
	Unready journal.State = "Unready"
	// NodeLost: the pod was unready when its node was lost.
	NodeLost journal.State = "NodeLost"
	// Restarting: a restart-envoy action is open, or EKCO has not yet seen that the pod which it deleted is gone.
	Restarting journal.State = "Restarting"
	// Ready: EKCO knows no unready pod.
	Ready journal.State = "Ready"
)

// Envoy is the machine's data about Envoy on a node.
type Envoy struct {
	// Pod is the unready pod.
	Pod journal.EnvoyPod `json:"pod"`
	// SeenAt is when EKCO saw that the pod is unready, by EKCO's clock. EKCO measures the unready time from then.
	SeenAt time.Time `json:"seen_at,omitzero"`
}

// Policy is the part of the configuration that decisions about Envoy depend on.
type Policy struct {
	// Restart enables automatic actions.
	Restart bool
	// After is how long a pod must be unready before EKCO replaces it.
	After time.Duration
}

// policyOf returns the policy for Envoy. If it is missing, no automatic action is allowed.
func policyOf(p fsm.Policy) Policy {
	policy, _ := p.Of[Machine].(Policy)
	return policy
}

// Known returns the pods that are unready according to the journal, by the name of the thing.
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
