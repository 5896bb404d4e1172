// Package nodereport defines the action report-node, which only a person can request. It has no machine of its own,
// because its subjects are nodes.
package nodereport

import (
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Name is the value of "ekco history --component" for this action.
const Name = "node-report"

// Capability returns the kind of action. It obeys only the rules that every kind obeys, because the action changes
// nothing, and persons need it when something is wrong.
func Capability() fsm.Capability {
	return fsm.Capability{Kinds: []fsm.ActionKind{{
		Name: journal.ActionReportNode, Verb: "report", Machine: "node", Manual: true,
	}}}
}

// Words has the entries of the message catalog for report-node.
var Words = words.Component{
	Name: Name, Machine: Name,
	Actions: []words.Action{{Kind: journal.ActionReportNode, Verb: "report on", Noun: "node"}},
}
