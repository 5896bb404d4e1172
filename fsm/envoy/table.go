package envoy

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Table returns the states and transitions of Envoy on a node.
func Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "Envoy",
		About: "The Envoy of one DaemonSet on one node, called NODE/DAEMONSET. If Envoy is no DaemonSet, each of its\n" +
			"pods has its own machine. It exists once a pod was unready.",
		Initial: string(Unready), Over: fsm.Names(Ready),
		Transitions: []fsm.Transition{
			{Event: "restart", From: fsm.Names(Unready, NodeLost, Ready), To: string(Restarting), When: "a restart-envoy action is open", Report: fsm.ReportReason("its pod is being replaced")},
			{Event: "ready", From: fsm.Names(Unready, NodeLost, Restarting), To: string(Ready), When: "the pod is ready again, or is gone", Report: fsm.ReportReason("EKCO knows of no unready pod of this Envoy")},
			{Event: "node-lost", From: fsm.Names(Unready, Restarting), To: string(NodeLost), When: "the node is unreachable or not known", Report: fsm.ReportReason("its node is lost, so what EKCO knows about the pod is outdated")},
			{Event: "node-back", From: fsm.Names(NodeLost), To: string(Unready), When: "the node answers again", Report: fsm.ReportReason("its node answers again; the pod's unready time counts from now on")},
			{Event: "stopped", From: fsm.Names(Restarting), To: string(Unready), When: "the action ended and the pod stays as it was: dry run, cancelled, abandoned", Report: fsm.ReportReason("the action ended and left the pod as it was")},
			{Event: "unready", From: fsm.Names(Ready), To: string(Unready), When: "a pod is unready", Report: reportUnready},
		},
	}
}

func reportUnready(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	return fsm.Report{Reason: fmt.Sprintf("pod %s is unready", of(t).Pod), Cause: t.FactsSeq}
}
