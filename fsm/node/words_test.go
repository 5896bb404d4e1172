package node

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestANodeThatIsOnlyCordonedIsNotCalledNotReady(t *testing.T) {
	cordon := journal.Taint{Key: journal.TaintUnschedulable, Effect: "NoSchedule"}
	away := journal.Taint{Key: journal.TaintNotReady, Effect: "NoExecute"}
	for want, taints := range map[string][]journal.Taint{
		"is ready":                                      nil,
		"is cordoned: no new pods start on it":          {cordon},
		"is not ready: cordoned, not-ready (NoExecute)": {cordon, away},
		"is not ready: not-ready (NoExecute)":           {away},
	} {
		var facts journal.NodeFacts
		facts.Taints = taints
		if got := observedText(&journal.NodeObserved{NodeFacts: facts}); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
