package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
)

// ErrUnknownNode says that the journal knows no node of the name; see [UnknownNodeError].
var ErrUnknownNode = errors.New("unknown node")

// UnknownNodeError says that the journal knows no node of the name, and which
// known names are near. It is an [ErrUnknownNode].
type UnknownNodeError struct {
	Name string
	Near []string
	// Alias is the node that the name means elsewhere, if there is one.
	Alias string
	// Places says where was looked for traces, without success; Doubts what
	// could not be asked there.
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

// Is makes errors.Is(err, ErrUnknownNode) hold, and so for fsm.ErrUnknown.
func (e *UnknownNodeError) Is(target error) bool {
	return target == ErrUnknownNode || target == fsm.ErrUnknown
}

// Unseen says the same where EKCO does not see what is there now.
func (e *UnknownNodeError) Unseen() string {
	return fmt.Sprintf("node %q is not in the journal, and EKCO cannot see whether it has joined", e.Name)
}
