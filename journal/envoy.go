package journal

import "time"

// ActionRestartEnvoy deletes an Envoy pod that stays unready, so that the pod's controller creates another pod. Its
// input is an [EnvoyPod].
const ActionRestartEnvoy ActionKind = "restart-envoy"

// EnvoyPod is an Envoy pod that runs and is unready. It is part of the facts, and the input of a restart-envoy.
type EnvoyPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	// Since is when the pod became unready, by the clock of its node. EKCO only compares it with other values, and does
	// not compute a duration from it, because that clock can be wrong.
	Since time.Time `json:"since"`
}

// Equal reports whether both are the same pod and became unready at the same time.
func (p EnvoyPod) Equal(other EnvoyPod) bool {
	since, otherSince := p.Since, other.Since
	p.Since, other.Since = time.Time{}, time.Time{}
	return p == other && since.Equal(otherSince)
}

// String returns the pod's name with its namespace.
func (p EnvoyPod) String() string { return p.Namespace + "/" + p.Name }
