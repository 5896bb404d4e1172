package purge_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/nodes"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// livePurge asks for the purge of a node that is ready.
func livePurge(w *world, request journal.ActionRequested) {
	node := w.Cluster.AddNode("w1", journal.RoleWorker)
	request.Kind = journal.ActionPurgeNode
	w.Request(journal.NodeSubject("w1", node.UID), request)
}

const liveWarning = "node w1 answers and is ready; purging it removes a node that works"

// answersAgain also says what to do when it is too late to give the purge up.
var answersAgain = actions.Verdict{
	Key:  "answers",
	Kind: actions.VerdictAbandon, Reason: "node w1 answers again",
	Advice: "power the node off, and join it again once it is purged",
}

func TestAReadyNodeWarnsThePersonWhoAsksForItsPurge(t *testing.T) {
	for name, test := range map[string]struct {
		request journal.ActionRequested
		lost    bool
		want    actions.Verdict
	}{
		"a ready node":                      {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}, false, actions.Warn(liveWarning).About("answers")},
		"a ready node, forced":              {journal.ActionRequested{Manual: true, Force: true, Input: journal.PurgeInput{Live: true}}, false, actions.Warn(liveWarning).About("answers")},
		"a node that was lost since":        {journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}}, true, actions.Pass()},
		"a lost node that answers again":    {journal.ActionRequested{Manual: true}, false, answersAgain},
		"an automatic purge is never asked": {journal.ActionRequested{Input: journal.PurgeInput{Live: true}}, false, answersAgain},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				livePurge(w, test.request)
				if test.lost {
					w.Cluster.LoseNode("w1")
				}
				_, checks, err := actions.NewRunner(w.cfg()).Explain(t.Context(), w.Record())
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
		w.RunToEnd(w.cfg())
		if w.NodeExists() || w.Count("warned NodeStillGone: "+liveWarning+" (no terminal)") != 1 {
			t.Errorf("the node exists: %v\n%s", w.NodeExists(), strings.Join(w.Story(), "\n"))
		}
	})
}

func TestTheLiveNodeIsJudgedWhateverIsOnRecordOfIt(t *testing.T) {
	made := func(api kube.API) actions.Definition { return purge.New(api) }
	nodestest.LiveNodeIsJudged(t, made, func(known journal.NodeFacts, _ []journal.PodRef) any {
		return journal.PurgeInput{Node: &known}
	})
}

func TestTheNodeIsReadAnewBeforeEachStepThatFollowsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := purged(w, journal.ActionRequested{})
		w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
			{ID: "a", Does: "act", Preflights: []string{nodes.StillGone}},
			{ID: "b", Does: "act", After: []string{"a"}, Preflights: []string{nodes.StillGone}},
		}}}, journal.TypeActionPlanned)
		kind, returns := purge.New(w.Cluster), &returning{w: w, node: node.Name}
		kind.Steps = map[string]actions.StepDef{"act": {Step: returns}}
		w.RunToEnd(w.Config([]actions.Definition{kind}))
		if got := returns.did; !slices.Equal(got, []string{"a"}) {
			t.Errorf("did %q, though the node answers since the first step", got)
		}
	})
}

// returning is a step during which the node returns.
type returning struct {
	w    *world
	node string
	did  []string
}

func (r *returning) Do(_ context.Context, step actions.StepContext) (json.RawMessage, error) {
	r.did = append(r.did, step.Planned.ID)
	r.w.Cluster.ReturnNode(r.node)
	return nil, nil
}

func (r *returning) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: slices.Contains(r.did, step.Planned.ID)}, nil
}
