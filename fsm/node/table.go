package node

import (
	"github.com/replicatedhq/ekco/fsm"
)

// The names of the transitions and entrances of the node machine.
const (
	eventAdopted  = "adopted"
	eventTraced   = "traced"
	eventLost     = "lost"
	eventReturned = "returned"
	eventClear    = "clear"
	eventCleared  = "cleared"
	eventPurge    = "purge"
	eventPurged   = "purged"
	eventStopped  = "stopped"
	eventGone     = "gone"
)

// Table returns the states and transitions of a node.
func Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "A node", OwnFacts: true,
		About: "Its identity is the UID: a Node of the same name with another UID is another machine.\n" +
			"A node that EKCO never saw has `traced:` and its name instead.",
		Initial: string(Healthy), Finals: []string{string(Purged)}, Normal: fsm.Names(Healthy), Over: fsm.Names(Purged, Gone),
		Entrances: []fsm.Entrance{
			{Event: eventAdopted, To: string(Unknown), When: "an action is adopted for a node that the journal does not know"},
			{Event: eventTraced, To: string(Gone), When: "a person purges a node that EKCO never saw, and something is left of it"},
		},
		Transitions: []fsm.Transition{
			{Event: eventLost, From: fsm.Names(Healthy, Gone), To: string(Unknown), When: "the node has the unreachable taint", Report: reportLost},
			{Event: eventClear, From: fsm.Names(Unknown, Cleared, Purging), To: string(Clearing), When: "a clear-node action is open", Report: reportOpen("a clear-node action is open")},
			{Event: eventCleared, From: fsm.Names(Clearing), To: string(Cleared), When: "no clear-node action is open and no terminating pod is left", Report: reportOpen("no terminating pod is left")},
			{Event: eventStopped, From: fsm.Names(Clearing, Purging), To: string(Unknown), When: "the action ended and the node stays as it was: dry run, cancelled, abandoned", Report: reportStopped},
			{Event: eventPurge, From: fsm.Names(Healthy, Unknown, Clearing, Cleared, Gone), To: string(Purging), When: "a purge-node action is open", Report: reportOpen("a purge-node action is open")},
			{Event: eventPurged, From: fsm.Names(Purging), To: string(Purged), When: "the purge is done", Report: reportPurged},
			{Event: eventReturned, From: fsm.Names(Unknown, Clearing, Cleared, Purging, Gone), To: string(Healthy), When: "the unreachable taint is gone, and no purge is past its point of no return", Report: reportReturned},
			{Event: eventGone, From: fsm.Names(Healthy, Unknown, Clearing, Cleared, Purging), To: string(Gone), When: "the Node object is gone and EKCO did not purge it", Report: reportGone},
		},
	}
}
