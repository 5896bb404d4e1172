package nodes

import (
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// TestACordonedNodeThatIsWellIsReady: as "ekco status" has it. Who purges it removes a node
// that works.
func TestACordonedNodeThatIsWellIsReady(t *testing.T) {
	taints := func(keys ...string) (facts journal.NodeFacts) {
		for _, key := range keys {
			facts.Taints = append(facts.Taints, journal.Taint{Key: key})
		}
		return facts
	}
	for want, facts := range map[string]journal.NodeFacts{
		"ready":                       taints(),
		"ready, though cordoned":      taints(journal.TaintUnschedulable),
		"reachable, though not ready": taints(journal.TaintUnschedulable, journal.TaintNotReady),
	} {
		if got := readinessText(facts); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
