package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// nodeTable returns a table of the nodes, and the number of hidden nodes. Unless everything is set, nodes that need no
// attention have no row and are only counted.
func nodeTable(status api.Status, all, everything bool, s style) []string {
	if len(status.Nodes) == 0 {
		return []string{"", "EKCO has seen no node yet."}
	}
	rows := [][]cell{{{text: "NODE"}, {text: "ROLE"}, {text: "STATE"}, {text: "SINCE"}, {text: "READY"}, {text: "NOTES"}}}
	hidden, normal := 0, 0
	for _, node := range status.Nodes {
		switch {
		case !all && isHidden(node, status.Now):
			hidden++
			continue
		case !everything && node.Normal:
			normal++
			continue
		}
		ready := "no"
		if node.Ready {
			ready = "yes"
		}
		rows = append(rows, []cell{
			{text: Clean(node.Name)},
			{text: Clean(orDash(string(node.Role)))},
			{text: Clean(string(node.State)), tone: toneOfNode(node.State)},
			{text: formatAge(status.Now.Sub(node.Since)) + " ago"},
			{text: ready},
			{text: strings.Join(nodeRemarks(node), ", ")},
		})
	}
	lines := append([]string{""}, asOfLine(status, s)...)
	if len(rows) > 1 {
		lines = append(lines, alignCells(rows, s)...)
	}
	if normal > 0 {
		lines = append(lines, s.paint(good, words.CountOf(normal, "node is", "nodes are")+" healthy: ekco status -o wide"))
	}
	if hidden > 0 {
		lines = append(lines, s.paint(faint, fmt.Sprintf("%s purged or gone for more than a day: ekco status --all", words.Count(hidden, "node"))))
	}
	return lines
}

// asOfLine returns a line that says that the nodes may have changed since.
func asOfLine(status api.Status, s style) []string {
	at := status.AsOf
	if at.IsZero() {
		return nil
	}
	return []string{s.paint(doubtful, "The nodes as EKCO saw them last, at "+words.Stamp(at)+" ("+agoText(status, at)+" ago):")}
}

// nodeRemarks returns further information about a node that an administrator should know.
func nodeRemarks(node api.NodeStatus) []string {
	var remarks []string
	if node.Flapping {
		remarks = append(remarks, "flapping: no action until it is stable")
	}
	if !node.UnreachableSince.IsZero() {
		remarks = append(remarks, "unreachable since "+words.Stamp(node.UnreachableSince))
	}
	for _, taint := range node.Taints {
		if word := taintRemark(taint, node); word != "" && !slices.Contains(remarks, word) {
			remarks = append(remarks, word)
		}
	}
	if node.TerminatingPods > 0 {
		remarks = append(remarks, words.Count(node.TerminatingPods, "terminating pod"))
	}
	if node.Excluded {
		remarks = append(remarks, "excluded by its label")
	}
	if journal.IsTraced(node.UID) {
		remarks = append(remarks, "never seen by EKCO, found by what is left of it")
	}
	return remarks
}

// taintRemark explains a taint that keeps pods away.
func taintRemark(taint journal.Taint, node api.NodeStatus) string {
	switch taint.Key {
	case journal.TaintUnschedulable:
		return "cordoned"
	case journal.TaintUnreachable:
		if !node.UnreachableSince.IsZero() || node.Flapping {
			return ""
		}
		return "unreachable"
	case journal.TaintNotReady:
		return "its kubelet reports that it is not ready"
	case journal.TaintNetworkUnavailable:
		return "its network is not set up"
	}
	return ""
}

// isHidden reports whether the table hides a node.
func isHidden(node api.NodeStatus, now time.Time) bool {
	return (node.State == fsmnode.Purged || node.State == fsmnode.Gone) && now.Sub(node.Since) > 24*time.Hour
}

func toneOfNode(state journal.NodeState) tone {
	switch state {
	case fsmnode.Healthy:
		return good
	case fsmnode.Unknown, fsmnode.Purging:
		return bad
	case fsmnode.Clearing, fsmnode.Cleared:
		return doubtful
	case fsmnode.Purged, fsmnode.Gone:
		return faint
	}
	return normal
}
