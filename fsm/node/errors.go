package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
)

// ErrUnknownNode is the error for a name that no node in the journal has; see [UnknownNodeError].
var ErrUnknownNode = errors.New("unknown node")

// UnknownNodeError is an [ErrUnknownNode] for a name. Near has similar known names.
type UnknownNodeError struct {
	Name string
	Near []string
	// Alias is the name of a known node that has Name as its hostname or in Ceph, or "".
	Alias string
	// Places are the places in which EKCO found no trace of the name. Doubts names the places that EKCO could not
	// search.
	Places, Doubts []string
}

func (e *UnknownNodeError) Error() string {
	text := fmt.Sprintf("unknown node %q: ", e.Name)
	if e.Alias != "" {
		return text + fmt.Sprintf("it is the hostname of node %s, or looks the same in Ceph", e.Alias) + fsm.DidYouMean(e.Near)
	}
	text += "neither the cluster nor the journal has it"
	if len(e.Places) > 0 {
		text += ", and EKCO found no trace of it in " + strings.Join(e.Places, " or ")
	}
	for _, doubt := range e.Doubts {
		text += "; " + doubt
	}
	return text + fsm.DidYouMean(e.Near)
}

// Is makes errors.Is return true for ErrUnknownNode and for fsm.ErrUnknown.
func (e *UnknownNodeError) Is(target error) bool {
	return target == ErrUnknownNode || target == fsm.ErrUnknown
}

// Unseen returns the message to show instead of Error if EKCO cannot see which nodes exist now.
func (e *UnknownNodeError) Unseen() string {
	return fmt.Sprintf("node %q is not in the journal, and EKCO cannot see whether it has joined", e.Name)
}
