package actions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// livePurge asks for the purge of a node that is ready.
func livePurge(w *world, request journal.ActionRequested) {
	node := w.cluster.AddNode("w1", journal.RoleWorker)
	request.Kind = journal.ActionPurgeNode
	w.request(journal.NodeSubject("w1", node.UID), request)
}

const liveWarning = "node w1 answers and is ready; purging it removes a node that works"

// answersAgain also says what to do when it is too late to give the purge up.
var answersAgain = actions.Verdict{
	Key:  "answers",
	Kind: actions.VerdictAbandon, Reason: "node w1 answers again",
	Advice: "power the node off, and join it anew once it is purged",
}

func TestAReadyNodeWarnsThePersonWhoAsksForItsPurge(t *testing.T) {
	for name, test := range map[string]struct {
		request journal.ActionRequested
		lost    bool
		want    actions.Verdict
	}{
		"a ready node":                      {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}, false, actions.Warn(liveWarning).About("answers")},
		"a ready node, forced":              {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}, Force: true}, false, actions.Warn(liveWarning).About("answers")},
		"a node that was lost since":        {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}, true, actions.Pass()},
		"a lost node that answers again":    {journal.ActionRequested{Manual: true}, false, answersAgain},
		"an automatic purge is never asked": {journal.ActionRequested{Input: journal.PurgeInput{Live: true}}, false, answersAgain},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				livePurge(w, test.request)
				if test.lost {
					w.cluster.LoseNode("w1")
				}
				_, checks, err := actions.NewRunner(w.config(productKinds(w))).Explain(t.Context(), w.record())
				if err != nil {
					t.Fatal(err)
				}
				want := actions.Check{Preflight: nodes.StillGone, Verdict: test.want}
				if !slices.Contains(checks, want) {
					t.Errorf("the preflights say %+v, want %+v among them", checks, want)
				}
			})
		})
	}
}

func TestTheWarningAboutAReadyNodeIsRecordedAndThePurgeGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		livePurge(w, journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
		w.runToEnd(w.config(productKinds(w)))
		if w.nodeExists() || w.count("warned NodeStillGone: "+liveWarning+" (no terminal)") != 1 {
			t.Errorf("the node exists: %v\n%s", w.nodeExists(), strings.Join(w.story(), "\n"))
		}
	})
}

// conditions are what can be seen of a node.
var conditions = map[string]func(c *kubesim.Cluster, name string){
	"lost":      (*kubesim.Cluster).LoseNode,
	"ready":     (*kubesim.Cluster).ReturnNode,
	"not ready": (*kubesim.Cluster).UnreadyNode,
}

func TestTheLiveNodeIsJudgedWhateverIsOnRecordOfIt(t *testing.T) {
	for _, kind := range []journal.ActionKind{journal.ActionClearNode, journal.ActionPurgeNode} {
		for recorded := range conditions {
			for live := range conditions {
				t.Run(string(kind)+" of a node that was "+recorded+" and is "+live, func(t *testing.T) {
					inBubble(t, func(t *testing.T, w *world) {
						node := w.cluster.AddNode("w1", journal.RoleWorker)
						conditions[recorded](w.cluster, "w1")
						known, err := w.cluster.Node(t.Context(), "w1")
						if err != nil {
							t.Fatal(err)
						}
						w.cluster.AddPod("default", "web-0", "w1")
						inputs := map[journal.ActionKind]any{
							journal.ActionClearNode: journal.ClearInput{Pods: w.cluster.TerminatePods("w1", time.Now().Add(-time.Minute))},
							journal.ActionPurgeNode: journal.PurgeInput{Node: &known.Facts},
						}
						w.request(journal.NodeSubject("w1", node.UID), journal.ActionRequested{Kind: kind, Input: inputs[kind]})
						conditions[live](w.cluster, "w1")
						w.runToEnd(w.config(productKinds(w)))
						want := map[bool]string{true: "ended done", false: "ended abandoned node w1 answers again"}[live == "lost"]
						if w.lastLine() != want {
							t.Errorf("the action %s, want %s", w.lastLine(), want)
						}
						if touched := len(w.cluster.Effects()) > 0; touched != (live == "lost") {
							t.Errorf("it did %v", w.cluster.Effects())
						}
					})
				})
			}
		}
	}
}

func TestTheNodeIsReadAnewBeforeEachStepThatFollowsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := purged(w, journal.ActionRequested{})
		w.append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
			{ID: "a", Does: "act", Preflights: []string{nodes.StillGone}},
			{ID: "b", Does: "act", After: []string{"a"}, Preflights: []string{nodes.StillGone}},
		}}}, journal.TypeActionPlanned)
		k := &script{do: func(context.Context, string) error { w.cluster.ReturnNode(node.Name); return nil }}
		w.runToEnd(w.config([]actions.Definition{k.guardedAs(purge.New(w.cluster))}))
		if got := k.calls(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("did %q, though the node answers since the first step", got)
		}
	})
}

// guardedAs is the script as an action of that definition.
func (k *script) guardedAs(kind actions.Definition) actions.Definition {
	own := k.definition()
	own.Kind, own.Preflights = kind.Kind, kind.Preflights
	return own
}
