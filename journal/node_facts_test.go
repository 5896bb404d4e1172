package journal_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestOnlyTheUnreachableTaintSaysThatANodeIsLost(t *testing.T) {
	added := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for key, lost := range map[string]bool{
		"node.kubernetes.io/unreachable":         true,
		"node.kubernetes.io/not-ready":           false,
		"node.kubernetes.io/network-unavailable": false,
		"node.kubernetes.io/unschedulable":       false,
	} {
		facts := journal.NodeFacts{Taints: []journal.Taint{{Key: key, Effect: "NoExecute", TimeAdded: added}}}
		since, unreachable := facts.Unreachable()
		if unreachable != lost || since.Equal(added) != lost {
			t.Errorf("%s: unreachable is %v since %s, want %v", key, unreachable, since, lost)
		}
		if facts.Ready() {
			t.Errorf("%s: the node counts as ready", key)
		}
	}
}
