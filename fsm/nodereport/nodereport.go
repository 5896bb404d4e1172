// Package nodereport is what EKCO decides about reports of nodes: that only a person asks for
// them. They are about things of the machine of nodes, and have none of their own.
package nodereport

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Name is the component's, by which the history of reports is found.
const Name = "node-report"

// Capability returns the kind of action. It obeys no rule of policy but what all do: it changes
// nothing on its node, and is asked for when something is wrong.
func Capability() fsm.Capability {
	return fsm.Capability{Kinds: []fsm.ActionKind{{
		Name: journal.ActionReportNode, Verb: "report", Machine: "node", Manual: true,
	}}}
}

// Words are how its events read.
var Words = words.Component{
	Name: Name, Machine: Name,
	Actions: []words.Action{{Kind: journal.ActionReportNode, Verb: "report on", Noun: "node"}},
}
