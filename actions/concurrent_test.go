package actions_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestOneRunnerRunsTheActionsOfManyNodesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const nodes = 30
		var records []journal.ActionRecord
		for i := range nodes {
			name := fmt.Sprintf("w%d", i)
			node := w.cluster.AddNode(name, journal.RoleWorker)
			for p := range 3 {
				w.cluster.AddPod("default", fmt.Sprintf("%s-%d", name, p), name)
			}
			w.cluster.LoseNode(name)
			request := journal.ActionRequested{
				Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: w.cluster.TerminatePods(name, time.Now().Add(-time.Minute))},
			}
			records = append(records, journal.ActionRecord{
				ID: "clear-" + name, Kind: request.Kind, Subject: journal.NodeSubject(name, node.UID), Request: request,
			})
		}
		w.cluster.SetLatency(time.Second)
		runner := actions.NewRunner(w.config(productKinds(w)))
		begin := time.Now()
		var running sync.WaitGroup
		for _, record := range records {
			running.Go(func() {
				if err := runner.Run(t.Context(), record, nil); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("took %s: one node waited for another", took)
		}
		if w.podsLeft() != 0 {
			t.Errorf("%d pods left", w.podsLeft())
		}
	})
}

func TestPolicyKnowsEveryRuleThatAPurgeListsAsItsOwn(t *testing.T) {
	record := journal.ActionRecord{ID: "p", Kind: journal.ActionPurgeNode, Subject: testSubject}
	for _, name := range purgeRules() {
		result := fsm.CheckRule(fsm.NewState(fsmnode.Capability()), fsm.Policy{}, time.Now(), name, record)
		if strings.Contains(result.Reason, "does not know") {
			t.Errorf("%s: %s", name, result.Reason)
		}
	}
}
