package journal

import "time"

// ActionRestartEnvoy deletes an Envoy pod that stays unready, so that its controller makes
// another. Its input is an [EnvoyPod].
const ActionRestartEnvoy ActionKind = "restart-envoy"

// EnvoyPod is an Envoy pod that is unready though it runs: what is recorded of one, and
// what a restart-envoy is about.
type EnvoyPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Node      string `json:"node,omitempty"`
	// Since is since when it is so, by the clock of its node. It tells one time that
	// the pod is unready from the next; how long it is so is not counted from it.
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
