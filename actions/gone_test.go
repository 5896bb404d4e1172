package actions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions"
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
	Kind: actions.VerdictAbandon, Reason: "node w1 answers again",
	Advice: "power the node off, and join it anew once it is purged",
}

func TestAReadyNodeWarnsThePersonWhoAsksForItsPurge(t *testing.T) {
	for name, test := range map[string]struct {
		request journal.ActionRequested
		lost    bool
		want    actions.Verdict
	}{
		"a ready node":                      {journal.ActionRequested{Manual: true, Live: true}, false, actions.Warn(liveWarning)},
		"a ready node, forced":              {journal.ActionRequested{Manual: true, Live: true, Force: true}, false, actions.Warn(liveWarning)},
		"a node that was lost since":        {journal.ActionRequested{Manual: true, Live: true}, true, actions.Pass()},
		"a lost node that answers again":    {journal.ActionRequested{Manual: true}, false, answersAgain},
		"an automatic purge is never asked": {journal.ActionRequested{Live: true}, false, answersAgain},
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
				want := actions.Check{Preflight: actions.NodeStillGone, Verdict: test.want}
				if !slices.Contains(checks, want) {
					t.Errorf("the preflights say %+v, want %+v among them", checks, want)
				}
			})
		})
	}
}

func TestTheWarningAboutAReadyNodeIsRecordedAndThePurgeGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		livePurge(w, journal.ActionRequested{Manual: true, Live: true})
		w.runToEnd(w.config(productKinds(w)))
		if w.nodeExists() || w.count("warned NodeStillGone: "+liveWarning+" (no terminal)") != 1 {
			t.Errorf("the node exists: %v\n%s", w.nodeExists(), strings.Join(w.story(), "\n"))
		}
	})
}
