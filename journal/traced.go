package journal

import "strings"

// NodeTraced says that a person asked for a node that EKCO never saw and that
// the cluster no longer has, and what was found of it all the same.
//
// The machine it opens has the UID that [TracedUID] gives. The actor is who
// asked, and the action is the purge that came of it.
type NodeTraced struct {
	// Found is what is left of the node, one sentence for each trace.
	Found []string `json:"found"`
	// Doubts are the places that could not be asked, and what is left alone.
	Doubts []string `json:"doubts,omitempty"`
}

// tracedPrefix cannot begin the UID of an object of Kubernetes: those are
// UUIDs, which have no colon.
const tracedPrefix = "traced:"

// TracedUID returns what stands for the UID of a node that EKCO never saw. The
// true one went with the Node object. It depends on the name alone, so that
// two journals mean the same machine by it, and an action that was adopted is
// about the machine that its own journal knew.
func TracedUID(name string) string { return tracedPrefix + name }

// IsTraced reports whether the UID stands for that of a node that EKCO never
// saw. No object of Kubernetes has such a UID.
func IsTraced(uid string) bool { return strings.HasPrefix(uid, tracedPrefix) }
