package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// next is what is to come of two nodes and of the cluster, in all its forms.
func next() api.Status {
	node, other := journal.NodeSubject("w1", "u1"), journal.NodeSubject("w2", "u2")
	return api.Status{Now: began, Verdict: api.OverallWorking, Next: []fsm.Upcoming{
		{Kind: journal.ActionClearNode, Subject: node, At: began.Add(-time.Minute)},
		{Kind: journal.ActionClearNode, Subject: node, At: began.Add(31 * time.Second), Why: "if pods are terminating"},
		{Kind: journal.ActionClearNode, Subject: other, At: began.Add(time.Minute), Rule: "Settling", Why: "it has started"},
		{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Things: 5, Rule: "StormBrake", Why: "too many"},
		{Kind: journal.ActionPurgeNode, Subject: other, Never: true, Why: "it is off"},
	}}
}

func TestWhatIsToComeIsSaidWithWhenAndWhatIsAgainstIt(t *testing.T) {
	want := []string{
		"NEXT",
		"  clear node w1 at any moment",
		"  clear node w1 at 2026-11-21T01:00:31Z (in 31s), if pods are terminating",
		"  clear node w2 at 2026-11-21T01:01:00Z (in 1m), until then blocked by Settling: it has started",
		"  clear any node (5 wait): blocked by StormBrake: too many",
		"  purge node w2: never automatically (it is off)",
	}
	if diff := cmp.Diff(want, nextLines(next(), vocabulary, style{})[1:]); diff != "" {
		t.Error(diff)
	}
}

func TestOfANameOnlyWhatIsToComeOfItAndOfAllIsShown(t *testing.T) {
	var out strings.Builder
	if err := Status(&out, next(), "table", StatusOptions{Name: "w1", Words: vocabulary}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "clear node w1 at") || !strings.Contains(text, "StormBrake") || strings.Contains(text, "w2") {
		t.Errorf("of w1 is to come\n%s", text)
	}
}

func TestWhoAsksWhatIsWrongIsToldWhatIsToComeToo(t *testing.T) {
	var out strings.Builder
	if err := Problems(&out, next(), Options{Words: vocabulary}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "WORKING: ") || !strings.Contains(text, "NEXT\n  clear node w1 at") {
		t.Errorf("nothing is to come in\n%s", text)
	}
}

func TestOfSeveralProblemsTheFirstIsTheHeadlineWithHowManyMore(t *testing.T) {
	status := api.Status{Verdict: api.OverallNeedsYou, Problems: []api.Problem{{NeedsYou: true, Reason: "node w1 is lost: long", Command: "ekco explain node/w1"}}}
	if got := verdictLines(status, vocabulary, style{})[0]; got != "NEEDS YOU: node w1 is lost (ekco explain node/w1)" {
		t.Errorf("of one it says %q", got)
	}
	for range 3 {
		status.Problems = append(status.Problems, api.Problem{NeedsYou: true, Reason: "another"})
	}
	if got := verdictLines(status, vocabulary, style{})[0]; got != "NEEDS YOU: node w1 is lost, and 3 more (ekco explain)" {
		t.Errorf("of four it says %q", got)
	}
	status.Problems = append([]api.Problem{{Reason: "it is at work"}}, status.Problems[0])
	if got := verdictLines(status, vocabulary, style{})[0]; got != "NEEDS YOU: node w1 is lost (ekco explain node/w1)" {
		t.Errorf("of one that needs nobody and one that does it says %q", got)
	}
}

func TestTheOnlyThingThatNeedsAPersonShowsItsReason(t *testing.T) {
	thing := api.Problem{Kind: api.ProblemNeedsPerson, NeedsYou: true, Reason: "kubeconfigs/cluster is Partly: its node is away", Advice: "run it again", Command: "ekco explain x"}
	want := []string{"NEEDS YOU: kubeconfigs/cluster is Partly (ekco explain x)", "  kubeconfigs/cluster is Partly: its node is away; run it again", ""}
	if diff := cmp.Diff(want, verdictLines(api.Status{Verdict: api.OverallNeedsYou, Problems: []api.Problem{thing}}, vocabulary, style{})); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
}

func TestWhatIsDueOfOneThingWhileEKCOStartsWaitsForItsFirstLook(t *testing.T) {
	explained, status := aPurge()
	explained.Next[0].At = explained.Now
	status.Starting = &api.Starting{}
	if got := strings.Join(thingLines(explained, status, Options{Words: vocabulary}, style{}), "\n"); !strings.Contains(got, "clear node worker-2 as soon as EKCO has seen the cluster") {
		t.Errorf("it says\n%s", got)
	}
}

func TestWhatIsDueWhileEKCOStartsWaitsForItsFirstLook(t *testing.T) {
	status := next()
	status.Starting = &api.Starting{}
	if got := nextLines(status, vocabulary, style{})[2]; got != "  clear node w1 as soon as EKCO has seen the cluster" {
		t.Errorf("it says %q", got)
	}
}

func TestTheHeadlineNamesWhatHoldsAndLeavesOutHowToLookAtIt(t *testing.T) {
	for reason, want := range map[string]string{
		"purge of w1 waits for finalizer a/b on node w1":              "purge of w1 waits for finalizer a/b on node w1",
		"purge of w1 is stalled at x: it failed; look at it: kubectl": "purge of w1 is stalled at x",
	} {
		if got := headline(api.Problem{Reason: reason}); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

// The first line names the action, also if there are several, and if there is a problem.
func TestTheVerdictSaysWhatEKCODoesAndHowToStopIt(t *testing.T) {
	purge := journal.ActionRecord{ID: "purge-w3-9", Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w3", "u3")}
	late := purge
	late.PastNoReturn = true
	other := api.Problem{Reason: "node w1 is lost: long", Command: "ekco explain node/w1"}
	own := api.Problem{Reason: "purge of w3 waits for a finalizer", Command: "ekco explain purge-w3-9"}
	waits := map[string]map[string]actions.Progress{"purge-w3-9": {"wait": {Missing: "it begins at noon; or not: kubectl"}}}
	for want, status := range map[string]api.Status{
		"purges w3; to stop it: ekco cancel w3":                    {Actions: []journal.ActionRecord{purge}},
		"purges w3; it begins at noon; to stop it: ekco cancel w3": {Actions: []journal.ActionRecord{purge}, Progress: waits},
		"purges w3": {Actions: []journal.ActionRecord{late}},
		"2 actions, the first purges w3; to stop it: ekco cancel w3": {Actions: []journal.ActionRecord{purge, late}, Progress: waits},
		"purges w3; node w1 is lost":                                 {Actions: []journal.ActionRecord{late}, Problems: []api.Problem{other}},
		"purge of w3 waits for a finalizer":                          {Actions: []journal.ActionRecord{late}, Problems: []api.Problem{own}},
	} {
		if got := activityText(status, vocabulary); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	copies := words.New(words.Component{Name: "rook", Actions: []words.Action{{Kind: "raise-copies", Verb: "raise the copies of", Noun: "pool"}}})
	status := api.Status{Actions: []journal.ActionRecord{{ID: "raise-9", Kind: "raise-copies", PastNoReturn: true, Subject: journal.Subject{Kind: "Pool", Name: "p"}}}}
	if got := activityText(status, copies); got != "raises the copies of p" {
		t.Errorf("it says %q", got)
	}
}
