package purge_test

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestADryRunOfAPurgeLeavesTheClusterAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.Cluster.LoseNode("w1")
		w.requestPurge(node, journal.ActionRequested{DryRun: true})
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 1", "started delete-node #1", "done delete-node #1 dry", "ended dry-run")
		if effects := w.Cluster.Effects(); len(effects) != 0 {
			t.Errorf("effects %v", effects)
		}
	})
}

func TestAnExplanationHasPlanAndChecksAndChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		preflights := policy(actions.Pass())
		preflights["StormBrake"] = actionstest.Always(actions.Hold("too many"))
		cfg := actionstest.With(w.cfg(), preflights)
		record := journal.ActionRecord{
			ID: "never-requested", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", node.UID),
			Request: journal.ActionRequested{Kind: journal.ActionPurgeNode},
		}
		plan, checks, err := actions.NewRunner(cfg).Explain(w.T.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Steps) != 1 || plan.Steps[0].ID != "delete-node" || len(plan.Facts) == 0 {
			t.Errorf("the plan is %+v", plan)
		}
		want := []actions.Check{{Preflight: "NodeStillGone", Verdict: answersAgain}}
		for _, name := range append(nodestest.Rules(journal.ActionPurgeNode), "SafeMode") {
			verdict := actions.Pass()
			if name == "StormBrake" {
				verdict = actions.Hold("too many")
			}
			want = append(want, actions.Check{Preflight: name, Verdict: verdict})
		}
		if !slices.Equal(checks, want) {
			t.Errorf("the checks are %v, want %v", checks, want)
		}
		if stat, err := w.Store.Stat(w.T.Context()); err != nil || stat.LastSeq != 1 {
			t.Errorf("the journal has %d events (%v), want only its first", stat.LastSeq, err)
		}
		if effects := w.Cluster.Effects(); len(effects) != 0 {
			t.Errorf("effects %v", effects)
		}
	})
}

func TestAnExplanationWithoutAPlanSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.Forbid(kubesim.GetNodes)
		record := journal.ActionRecord{Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "uid")}
		if _, _, err := actions.NewRunner(w.cfg()).Explain(w.T.Context(), record); err == nil {
			t.Error("no error")
		}
		if _, _, err := actions.NewRunner(w.Config(nil)).Explain(w.T.Context(), record); err == nil {
			t.Error("no error for an unknown kind")
		}
	})
}
