package rookpods

import (
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Words has the entries of the message catalog for these settings and the actions that change them.
var Words = words.Component{
	Name: Machine,
	Actions: []words.Action{
		{Kind: journal.ActionSetCSIResources, Verb: "set the resources of Ceph's CSI pods in", Noun: "ConfigMap of Rook"},
		{Kind: journal.ActionSpreadMDS, Verb: "spread", Noun: "MDS"},
		{Kind: journal.ActionSetPriorityClass, Verb: "set the priority class of", Noun: "workload of Rook"},
	},
	APIVersions: map[string]string{
		journal.RookOperatorConfig.Kind: "v1", journal.KindDeployment: "apps/v1", journal.KindDaemonSet: "apps/v1",
	},
	Rows: slices.Concat(
		rows(journal.RookOperatorConfig.Kind, seenConfig), rows(journal.KindCephMDS, seenMDS),
		rows(journal.KindDeployment, seenWorkload), rows(journal.KindDaemonSet, seenWorkload),
	),
}

func rows(about string, says func(journal.RookPodsFacts) string) []words.Row {
	return []words.Row{words.Transition(about, words.IsNow("")), words.Observed(about, says), words.Gone(about)}
}

func seenConfig(facts journal.RookPodsFacts) string {
	switch {
	case facts.Unversioned != "":
		return "is for a Rook of unknown version: " + facts.Unversioned
	case len(facts.Differing) > 0:
		return "gives Ceph's CSI pods other resources than EKCO: " + strings.Join(facts.Differing, ", ")
	}
	return "is correct for Rook " + facts.Version
}

func seenMDS(facts journal.RookPodsFacts) string { return "is observed: " + mdsText(facts) }

func seenWorkload(facts journal.RookPodsFacts) string {
	if facts.Priority == "" {
		return "has pods without a priority class"
	}
	return "has pods of priority class " + facts.Priority
}
