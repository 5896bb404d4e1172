package journal

import "strings"

// NodeTraced says that a person requested the purge of a node that EKCO never saw and that has no Node object any more.
//
// The event's subject has a UID from [TracedUID]. The event's actor is the person, and its action is the purge.
type NodeTraced struct {
	// Found has one sentence for each place in which something is left of the node.
	Found []string `json:"found"`
	// Doubts names the places that EKCO could not search, and the remains that the purge will not remove.
	Doubts []string `json:"doubts,omitempty"`
}

// tracedPrefix has a colon, so no UID of a Kubernetes object begins with it.
const tracedPrefix = "traced:"

// TracedUID returns a UID for a node that EKCO never saw, because the true UID was deleted with the Node. It depends
// only on the name, so that two journals use the same UID for the node.
func TracedUID(name string) string { return tracedPrefix + name }

// IsTraced reports whether the UID is from [TracedUID].
func IsTraced(uid string) bool { return strings.HasPrefix(uid, tracedPrefix) }
