// Package nodereport defines the action that reports about a node. Only a person requests it. Its subjects are nodes,
// so it has no machine of its own.
package nodereport

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Name is the component's name in the history.
const Name = "node-report"

// Capability returns the kind of action. It obeys only the rules that apply to every kind: it changes nothing on its
// node, and people need it when something is wrong.
func Capability() fsm.Capability {
	return fsm.Capability{Kinds: []fsm.ActionKind{{
		Name: journal.ActionReportNode, Verb: "report", Machine: "node", Manual: true,
	}}}
}

// Words has the message catalog entries for its events.
var Words = words.Component{
	Name: Name, Machine: Name,
	Actions: []words.Action{{Kind: journal.ActionReportNode, Verb: "report on", Noun: "node"}},
}
