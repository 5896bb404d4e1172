package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
)

// ErrUnknownNode means that the journal knows no node with this name; see [UnknownNodeError].
var ErrUnknownNode = errors.New("unknown node")

// UnknownNodeError is an [ErrUnknownNode] with similar known names.
type UnknownNodeError struct {
	Name string
	Near []string
	// Alias is the node that the name may mean in Ceph or as a hostname, or "".
	Alias string
	// Places is where EKCO searched for traces without success, Doubts what it could not check.
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

// Is makes errors.Is true for ErrUnknownNode and fsm.ErrUnknown.
func (e *UnknownNodeError) Is(target error) bool {
	return target == ErrUnknownNode || target == fsm.ErrUnknown
}

// Unseen is the message if EKCO cannot see which nodes exist now.
func (e *UnknownNodeError) Unseen() string {
	return fmt.Sprintf("node %q is not in the journal, and EKCO cannot see whether it has joined", e.Name)
}
