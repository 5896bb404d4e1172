package journal

import "strings"

// NodeTraced says that a person requested the purge of a node that EKCO never saw and that has no Node, and what is
// left of it.
//
// The machine that it opens has the UID of [TracedUID]. The actor is the requester, and the action is the purge.
type NodeTraced struct {
	// Found is what is left of the node, one sentence for each place.
	Found []string `json:"found"`
	// Doubts are the places that did not answer, and what the purge leaves.
	Doubts []string `json:"doubts,omitempty"`
}

// tracedPrefix cannot begin the UID of a Kubernetes object: UUIDs have no colon.
const tracedPrefix = "traced:"

// TracedUID returns the UID for a node that EKCO never saw, since the true one was deleted with the Node. It depends
// on the name alone, so that it means the same node in two journals, also for an adopted action.
func TracedUID(name string) string { return tracedPrefix + name }

// IsTraced reports whether the UID is of a node that EKCO never saw. No Kubernetes object has such a UID.
func IsTraced(uid string) bool { return strings.HasPrefix(uid, tracedPrefix) }
