package actions_test

import (
	"context"
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestADryRunRecordsEveryStepAndDoesNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{guarded("a", "X"), step("b", "a")}}
		k.prove = func(context.Context, string) (bool, error) { t.Error("a proof was looked for"); return false, nil }
		w.request(testSubject, journal.ActionRequested{Kind: testKind, DryRun: true, Manual: true})
		w.runToEnd(w.guardedBy(k, always(actions.Warn("careful"))))
		w.wantStory("requested", "planned 2", "warned X: careful (no terminal)",
			"started a #1", "done a #1 dry", "started b #1", "done b #1 dry", "ended dry-run")
		if len(k.calls()) != 0 {
			t.Errorf("did %q", k.calls())
		}
	})
}

func TestADryRunOfAPurgeLeavesTheClusterAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.cluster.AddNode("w1", journal.RoleWorker)
		w.cluster.LoseNode("w1")
		w.requestPurge(node, journal.ActionRequested{DryRun: true})
		w.runToEnd(w.config(productKinds(w)))
		w.wantStory("requested", "planned 1", "started delete-node #1", "done delete-node #1 dry", "ended dry-run")
		if effects := w.cluster.Effects(); len(effects) != 0 {
			t.Errorf("effects %v", effects)
		}
	})
}

func TestAnExplanationHasPlanAndChecksAndChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.cluster.AddNode("w1", journal.RoleWorker)
		preflights := policy(actions.Pass())
		preflights["StormBrake"] = always(actions.Hold("too many"))
		cfg := withPreflights(w.config(productKinds(w)), preflights)
		record := journal.ActionRecord{
			ID: "never-requested", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", node.UID),
			Request: journal.ActionRequested{Kind: journal.ActionPurgeNode},
		}
		plan, checks, err := actions.NewRunner(cfg).Explain(w.t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Steps) != 1 || plan.Steps[0].ID != "delete-node" || len(plan.Facts) == 0 {
			t.Errorf("the plan is %+v", plan)
		}
		want := []actions.Check{{Preflight: "NodeStillGone", Verdict: answersAgain}}
		for _, name := range append(purgeRules(), "SafeMode") {
			verdict := actions.Pass()
			if name == "StormBrake" {
				verdict = actions.Hold("too many")
			}
			want = append(want, actions.Check{Preflight: name, Verdict: verdict})
		}
		if !slices.Equal(checks, want) {
			t.Errorf("the checks are %v, want %v", checks, want)
		}
		if stat, err := w.store.Stat(w.t.Context()); err != nil || stat.LastSeq != 1 {
			t.Errorf("the journal has %d events (%v), want only its first", stat.LastSeq, err)
		}
		if effects := w.cluster.Effects(); len(effects) != 0 {
			t.Errorf("effects %v", effects)
		}
	})
}

func TestAnExplanationOfAnOpenActionShowsThePlanItHas(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{plan: func() error { t.Error("it was planned again"); return nil }}
		interrupted(w, guarded("a", "X"))
		cfg := w.guardedBy(k, always(actions.Pass()))
		plan, checks, err := actions.NewRunner(cfg).Explain(w.t.Context(), w.record())
		if err != nil || len(plan.Steps) != 1 || len(checks) != 1+len(standing()) || checks[0].Preflight != "X" {
			t.Errorf("got %v, %v, %v", plan, checks, err)
		}
	})
}

func TestAnExplanationWithoutAPlanSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.Forbid(kubesim.GetNodes)
		record := journal.ActionRecord{Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "uid")}
		if _, _, err := actions.NewRunner(w.config(productKinds(w))).Explain(w.t.Context(), record); err == nil {
			t.Error("no error")
		}
		if _, _, err := actions.NewRunner(w.config(nil)).Explain(w.t.Context(), record); err == nil {
			t.Error("no error for an unknown kind")
		}
	})
}
