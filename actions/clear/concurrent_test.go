package clear_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

func TestOneRunnerRunsTheActionsOfManyNodesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const nodes = 30
		var records []journal.ActionRecord
		for i := range nodes {
			name := fmt.Sprintf("w%d", i)
			node := w.Cluster.AddNode(name, journal.RoleWorker)
			for p := range 3 {
				w.Cluster.AddPod("default", fmt.Sprintf("%s-%d", name, p), name)
			}
			w.Cluster.LoseNode(name)
			request := journal.ActionRequested{
				Kind: journal.ActionClearNode, Input: journal.ClearInput{Pods: w.Cluster.TerminatePods(name, time.Now().Add(-time.Minute))},
			}
			records = append(records, journal.ActionRecord{
				ID: "clear-" + name, Kind: request.Kind, Subject: journal.NodeSubject(name, node.UID), Request: request,
			})
		}
		w.Cluster.SetLatency(time.Second)
		runner := actions.NewRunner(w.cfg())
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
		if w.PodsLeft() != 0 {
			t.Errorf("%d pods left", w.PodsLeft())
		}
	})
}
