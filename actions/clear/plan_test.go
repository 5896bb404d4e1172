package clear_test

import (
	"flag"
	"testing"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

var update = flag.Bool("update", false, "write the golden plan in testdata/plans anew")

func TestEveryStepHasItsGuardsItsFlagsAndItsPlaceInThePlan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w5", journal.RoleWorker)
		w.Cluster.LoseNode("w5")
		plan := w.Plan(w.kinds(nil)[0], journal.ActionRecord{
			Subject: journal.NodeSubject("w5", node.UID),
			Request: journal.ActionRequested{Input: journal.ClearInput{Pods: []journal.PodRef{
				{Namespace: "default", Name: "web-0", UID: "uid-web-0"}, {Namespace: "default", Name: "web-1", UID: "uid-web-1"},
			}}},
		})
		actionstest.Golden(t, "testdata/plans/clear-node.txt", "The pods of a lost worker are freed.\n"+plan, *update)
	})
}
