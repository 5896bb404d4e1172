package purge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestPolicyKnowsEveryRuleThatAPurgeListsAsItsOwn(t *testing.T) {
	record := journal.ActionRecord{ID: "p", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "uid-w1")}
	for _, name := range nodestest.Rules(journal.ActionPurgeNode) {
		result := fsm.CheckRule(fsm.NewState(fsmnode.Capability()), fsm.Policy{}, time.Now(), name, record)
		if strings.Contains(result.Reason, "does not know") {
			t.Errorf("%s: %s", name, result.Reason)
		}
	}
}
