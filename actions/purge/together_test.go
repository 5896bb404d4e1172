package purge_test

import (
	"context"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/journal"
)

func TestPreflightsAreAskedSideBySideAndAnswerInTheirOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.Cluster.LoseNode("w1")
		preflights := policy(actions.Pass())
		for name := range preflights {
			preflights[name] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
				time.Sleep(time.Second)
				return actions.Pass()
			})
		}
		began := time.Now()
		_, checks, err := actions.NewRunner(actionstest.With(w.cfg(), preflights)).Explain(t.Context(), journal.ActionRecord{
			ID: "never-requested", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", node.UID),
			Request: journal.ActionRequested{Kind: journal.ActionPurgeNode},
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("%d preflights of a second each took %s", len(checks), took)
		}
		for i, name := range append([]string{nodes.StillGone}, nodestest.Rules(journal.ActionPurgeNode)...) {
			if checks[i].Preflight != name {
				t.Errorf("answer %d is of %s, want %s", i, checks[i].Preflight, name)
			}
		}
	})
}
