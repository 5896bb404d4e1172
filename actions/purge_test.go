package actions_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// purge asks to purge a lost node.
func purged(w *world, request journal.ActionRequested) kube.Node {
	node := w.cluster.AddNode("w1", journal.RolePrimary)
	w.cluster.LoseNode("w1")
	w.requestPurge(node, request)
	return node
}

func (w *world) nodeExists() bool {
	_, err := w.cluster.Node(w.t.Context(), "w1")
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		w.t.Fatal(err)
	}
	return err == nil
}

func (w *world) facts() purge.Facts {
	w.t.Helper()
	var facts purge.Facts
	for _, event := range w.events() {
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		if planned, ok := payload.(*journal.ActionPlanned); ok {
			if err := json.Unmarshal(planned.Plan.Facts, &facts); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return facts
}

func TestAPurgeCapturesWhoTheNodeWasAndDeletesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := purged(w, journal.ActionRequested{})
		w.cluster.SetInternalIP("w1", "10.9.9.9") // what is seen now counts more than what was
		w.runToEnd(w.config(productKinds(w)))
		w.wantStory("requested", "planned 1", "started delete-node #1", "done delete-node #1", "ended done")
		if w.nodeExists() {
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
		w.cluster.RemoveNode("w1")
		w.runToEnd(w.config(productKinds(w)))
		want := purge.NodeIdentity{
			Name: "w1", UID: node.UID, Role: journal.RolePrimary, Hostname: "w1", InternalIP: node.Facts.InternalIP,
		}
		if got := w.facts().Node; got != want {
			t.Errorf("captured %+v, want %+v", got, want)
		}
		if w.lastLine() != "ended done" {
			t.Errorf("the action %s", w.lastLine())
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
				w.cluster.ReplaceNode("w1")
				w.runToEnd(w.config(productKinds(w)))
				if !w.nodeExists() || !strings.HasPrefix(w.lastLine(), "ended done another Node had the name w1") {
					t.Errorf("the node exists: %v; the action %s", w.nodeExists(), w.lastLine())
				}
			})
		})
	}
}

func TestAPurgeWithoutAUIDDeletesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cluster.AddNode("w1", journal.RoleWorker)
		w.request(journal.NodeSubject("w1", ""), journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true, Input: journal.PurgeInput{Live: true}})
		w.runToEnd(w.config(productKinds(w)))
		if !w.nodeExists() || len(w.cluster.Effects()) != 0 {
			t.Errorf("effects %v", w.cluster.Effects())
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
				w.cluster.ReturnNode("w1")
				w.runToEnd(w.config(productKinds(w)))
				if w.nodeExists() == test.purged {
					t.Errorf("purged: %v, want %v; %q", !w.nodeExists(), test.purged, w.story())
				}
				if !test.purged {
					w.wantStory("requested", "planned 1", "ended abandoned node w1 answers again")
				}
			})
		})
	}
}

func TestANodeThatComesBackWhileItsDeletionFailsIsNotPurged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.cluster.Forbid(kubesim.DeleteNodes)
		r := w.start(w.config(productKinds(w)))
		letPass(3 * time.Second)
		w.cluster.ReturnNode("w1")
		w.cluster.Allow(kubesim.DeleteNodes)
		r.end()
		if !w.nodeExists() || w.lastLine() != "ended abandoned node w1 answers again" {
			t.Errorf("the node exists: %v; %q", w.nodeExists(), w.story())
		}
	})
}

func TestEveryRuleOfPolicyHoldsAPurge(t *testing.T) {
	for _, rule := range []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"} {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, journal.ActionRequested{})
				rules := policy(actions.Pass())
				guard := answering(actions.Hold("not now"))
				rules[rule] = guard
				r := w.start(withPreflights(w.config(productKinds(w)), rules))
				letPass(10 * time.Minute)
				w.wantStory("requested", "planned 1", `held "delete-node" by `+rule)
				if !w.nodeExists() {
					t.Error("the node was deleted")
				}
				guard.turn(actions.Pass())
				if err := r.wait(); err != nil || w.nodeExists() {
					t.Errorf("%v, the node exists: %v", err, w.nodeExists())
				}
			})
		})
	}
}

func TestAnOutageWhilePlanningHoldsThePurge(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.cluster.Outage(true)
		r := w.start(w.config(productKinds(w)))
		letPass(time.Hour)
		w.wantStory("requested", `held "" by Plan`)
		w.cluster.Outage(false)
		if err := r.wait(); err != nil || w.nodeExists() {
			t.Errorf("%v, the node exists: %v", err, w.nodeExists())
		}
	})
}

func TestAMissingPermissionStallsThePurgeAndIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		w.cluster.Forbid(kubesim.DeleteNodes)
		r := w.start(w.config(productKinds(w)))
		letPass(time.Hour)
		if reason := w.record().Stalled.Reason; !strings.Contains(reason, "lacks the permission to delete nodes") {
			t.Errorf("stalled because %q", reason)
		}
		r.halt()
	})
}

func TestAPurgeIsIrreversibleAndGuardedByTheLiveRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		plan, _, err := actions.NewRunner(w.config(productKinds(w))).Explain(w.t.Context(), w.record())
		if err != nil {
			t.Fatal(err)
		}
		step := plan.Steps[len(plan.Steps)-1]
		if !step.Irreversible || !slices.Contains(step.Preflights, nodes.StillGone) || step.Timeout != journal.Duration(time.Minute) {
			t.Errorf("the step is %+v", step)
		}
	})
}
