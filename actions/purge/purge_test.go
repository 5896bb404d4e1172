package purge_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// purge asks to purge a lost node.
func purged(w *world, request journal.ActionRequested) kube.Node {
	node := w.Cluster.AddNode("w1", journal.RolePrimary)
	w.Cluster.LoseNode("w1")
	w.requestPurge(node, request)
	return node
}

func (w *world) facts() purge.Facts {
	w.T.Helper()
	var facts purge.Facts
	for _, event := range w.Events() {
		payload, err := event.Decode()
		if err != nil {
			w.T.Fatal(err)
		}
		if planned, ok := payload.(*journal.ActionPlanned); ok {
			if err := json.Unmarshal(planned.Plan.Facts, &facts); err != nil {
				w.T.Fatal(err)
			}
		}
	}
	return facts
}

func TestAPurgeCapturesWhoTheNodeWasAndDeletesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := purged(w, journal.ActionRequested{})
		w.Cluster.SetInternalIP("w1", "10.9.9.9") // what is seen now counts more than what was
		w.RunToEnd(w.cfg())
		w.WantStory("requested", "planned 1", "started delete-node #1", "done delete-node #1", "ended done")
		if w.NodeExists() {
			t.Error("the node still exists")
		}
		want := purge.NodeIdentity{
			Name: "w1", UID: node.UID, Role: journal.RolePrimary,
			InternalIP: "10.9.9.9", Hostname: "w1", Present: true,
		}
		if got := w.facts().Node; got != want {
			t.Errorf("captured %+v, want %+v", got, want)
		}
	})
}

func TestAPurgeOfANodeThatIsGoneTakesItsFactsFromTheRequestAndIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := purged(w, journal.ActionRequested{Manual: true})
		w.Cluster.RemoveNode("w1")
		w.RunToEnd(w.cfg())
		want := purge.NodeIdentity{
			Name: "w1", UID: node.UID, Role: journal.RolePrimary, Hostname: "w1", InternalIP: node.Facts.InternalIP,
		}
		if got := w.facts().Node; got != want {
			t.Errorf("captured %+v, want %+v", got, want)
		}
		if w.LastLine() != "ended done" {
			t.Errorf("the action %s", w.LastLine())
		}
	})
}

func TestANodeReplacedUnderTheSameNameIsNeverDeleted(t *testing.T) {
	for name, request := range map[string]journal.ActionRequested{
		"automatic": {}, "manual": {Manual: true}, "manual and live": {Manual: true, Force: true, Input: journal.PurgeInput{Live: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, request)
				w.Cluster.ReplaceNode("w1")
				w.RunToEnd(w.cfg())
				if !w.NodeExists() || !strings.HasPrefix(w.LastLine(), "ended done another Node had the name w1") {
					t.Errorf("the node exists: %v; the action %s", w.NodeExists(), w.LastLine())
				}
			})
		})
	}
}

func TestAPurgeWithoutAUIDDeletesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Cluster.AddNode("w1", journal.RoleWorker)
		w.Request(journal.NodeSubject("w1", ""), journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true, Input: journal.PurgeInput{Live: true}})
		w.RunToEnd(w.cfg())
		if !w.NodeExists() || len(w.Cluster.Effects()) != 0 {
			t.Errorf("effects %v", w.Cluster.Effects())
		}
	})
}

func TestANodeThatCameBackIsNotPurgedUnlessItWasLiveWhenAPersonAsked(t *testing.T) {
	for name, test := range map[string]struct {
		request journal.ActionRequested
		purged  bool
	}{
		"automatic":                  {journal.ActionRequested{}, false},
		"manual":                     {journal.ActionRequested{Manual: true}, false},
		"manual and forced":          {journal.ActionRequested{Manual: true, Force: true}, false},
		"manual and live when asked": {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, test.request)
				w.Cluster.ReturnNode("w1")
				w.RunToEnd(w.cfg())
				if w.NodeExists() == test.purged {
					t.Errorf("purged: %v, want %v; %q", !w.NodeExists(), test.purged, w.Story())
				}
				if !test.purged {
					w.WantStory("requested", "planned 1", "ended abandoned node w1 answers again")
				}
			})
		})
	}
}

func TestANodeThatComesBackWhileItsDeletionFailsIsNotPurged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.Cluster.Forbid(kubesim.DeleteNodes)
		r := w.Start(w.cfg())
		w.Pass(3 * time.Second)
		w.Cluster.ReturnNode("w1")
		w.Cluster.Allow(kubesim.DeleteNodes)
		r.End()
		if !w.NodeExists() || w.LastLine() != "ended abandoned node w1 answers again" {
			t.Errorf("the node exists: %v; %q", w.NodeExists(), w.Story())
		}
	})
}

func TestEveryRuleOfPolicyHoldsAPurge(t *testing.T) {
	for _, rule := range []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"} {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, journal.ActionRequested{})
				rules := policy(actions.Pass())
				guard := actionstest.NewPreflight(actions.Hold("not now"))
				rules[rule] = guard
				r := w.Start(actionstest.With(w.cfg(), rules))
				w.Pass(10 * time.Minute)
				w.WantStory("requested", "planned 1", `held "delete-node" by `+rule)
				if !w.NodeExists() {
					t.Error("the node was deleted")
				}
				guard.SetVerdict(actions.Pass())
				if err := r.Wait(); err != nil || w.NodeExists() {
					t.Errorf("%v, the node exists: %v", err, w.NodeExists())
				}
			})
		})
	}
}

func TestAnOutageWhilePlanningHoldsThePurge(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.Cluster.Outage(true)
		r := w.Start(w.cfg())
		w.Pass(time.Hour)
		w.WantStory("requested", `held "" by Plan`)
		w.Cluster.Outage(false)
		if err := r.Wait(); err != nil || w.NodeExists() {
			t.Errorf("%v, the node exists: %v", err, w.NodeExists())
		}
	})
}

func TestAMissingPermissionStallsThePurgeAndIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.Cluster.Forbid(kubesim.DeleteNodes)
		r := w.Start(w.cfg())
		w.Pass(time.Hour)
		if reason := w.Record().Stalled.Reason; !strings.Contains(reason, "lacks the permission to delete nodes") {
			t.Errorf("stalled because %q", reason)
		}
		r.Halt()
	})
}

func TestAPurgeIsIrreversibleAndGuardedByTheLiveRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		plan, _, err := actions.NewRunner(w.cfg()).Explain(w.T.Context(), w.Record())
		if err != nil {
			t.Fatal(err)
		}
		step := plan.Steps[len(plan.Steps)-1]
		if !step.Irreversible || !slices.Contains(step.Preflights, nodes.StillGone) || step.Timeout != journal.Duration(time.Minute) {
			t.Errorf("the step is %+v", step)
		}
	})
}
