// Package nodereport decides about reports of nodes: only a person requests them. They are about things of the node
// machine, and have no machine of their own.
package nodereport

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Name is the component's name in the history.
const Name = "node-report"

// Capability returns the kind of action. It obeys only the rules of every kind: it changes nothing on its node, and
// people request it when something is wrong.
func Capability() fsm.Capability {
	return fsm.Capability{Kinds: []fsm.ActionKind{{
		Name: journal.ActionReportNode, Verb: "report", Machine: "node", Manual: true,
	}}}
}

// Words are the words for its events.
var Words = words.Component{
	Name: Name, Machine: Name,
	Actions: []words.Action{{Kind: journal.ActionReportNode, Verb: "report on", Noun: "node"}},
}
