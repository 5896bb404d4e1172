package journal

import "time"

// ActionRestartEnvoy deletes an Envoy pod that stays unready, so that its controller creates another. Its input is an
// [EnvoyPod].
const ActionRestartEnvoy ActionKind = "restart-envoy"

// EnvoyPod is an Envoy pod that runs and is unready. Facts list them, and a restart-envoy has one as its input.
type EnvoyPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	// Since is when it became unready, by the clock of its node. It distinguishes two losses of readiness; EKCO does
	// not compute a duration from it.
	Since time.Time `json:"since"`
}

// Equal reports whether both are the same pod, unready since the same time.
func (p EnvoyPod) Equal(other EnvoyPod) bool {
	since, otherSince := p.Since, other.Since
	p.Since, other.Since = time.Time{}, time.Time{}
	return p == other && since.Equal(otherSince)
}

// String returns the pod's name with its namespace.
func (p EnvoyPod) String() string { return p.Namespace + "/" + p.Name }
