package view

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// aPurge is of worker-2, which is lost, and others are about others.
func aPurge() (api.ThingExplanation, api.Status) {
	node, other := journal.NodeSubject("worker-2", "u2"), journal.NodeSubject("worker-3", "u3")
	purge := journal.ActionRecord{ID: "purge-2", Kind: journal.ActionPurgeNode, Subject: node, LastSeq: 9, Steps: map[string]journal.StepRecord{"a": {Attempts: 1, NextTry: began}}}
	refusal := fsm.Refusal{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Rule: "StormBrake", Since: began}
	explained := api.ThingExplanation{
		Now: began, Machine: "node", Subject: node, State: "Purging", Since: began, FactsSeq: 4, Actions: []journal.ActionRecord{purge}, Refusals: []fsm.Refusal{refusal},
		Next: []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: node, At: began.Add(time.Minute)}, {Kind: journal.ActionClearNode, Subject: node, Rule: "StormBrake"}},
	}
	return explained, api.Status{
		Now: began,
		Next: []fsm.Upcoming{
			{Kind: journal.ActionClearNode, Subject: node, At: began.Add(time.Minute)},
			{Kind: journal.ActionClearNode, Subject: other, At: began.Add(time.Minute)},
			{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Rule: "StormBrake"},
			{Kind: journal.ActionClearNode, Subject: journal.ClusterSubject, Rule: "Settling"},
		},
		Pauses:   map[string]fsm.PauseState{"": {Reason: "of all"}, "worker-2": {Reason: "of this"}, "worker-3": {Reason: "of another"}},
		Problems: []api.Problem{{Thing: "node/worker-2", Reason: "node worker-2 is lost: long", Advice: "bring it back"}, {Thing: "node/worker-3", Reason: "another", Advice: "not here"}},
	}
}

func TestAnExplanationHasWhatIsAboutTheThingAndNothingElse(t *testing.T) {
	thing, status := aPurge()
	var out strings.Builder
	options := Options{
		Words: vocabulary,
		Lookup: func(seq uint64) (journal.Event, bool) {
			return journal.Event{Seq: seq, Time: began, Type: journal.TypeNodeGone, Version: 1, Subject: thing.Subject, Payload: []byte(`{"reason":"r"}`)}, true
		},
		Origin: func(string) (journal.Event, bool) { return journal.Event{Cause: 5}, true },
	}
	if err := Things(&out, []api.ThingExplanation{thing}, status, options); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Because:  of #4, at 2026-11-21T01:00:00Z: node worker-2 is gone: r", "purge-2, because of #5, at", "purge-2, last event: #9, at",
		"everything, by ", "node worker-2, by ", "of all", "of this", "clear node worker-2 at 2026-11-21T01:01:00Z", "blocked by StormBrake",
		"node worker-2 is lost: bring it back", "ekco retry purge-2 ", "ekco cancel purge-2 ", "ekco history node/worker-2 -o tree",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"worker-3", "of another", "Settling", "not here", "BLOCKED"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("there is %q in\n%s", not, out.String())
		}
	}
}

func TestAnExplanationOfACordonedNodeSaysHowItIsUncordoned(t *testing.T) {
	for taint, want := range map[string]bool{journal.TaintUnschedulable: true, journal.TaintUnreachable: false} {
		thing, status := aPurge()
		node := api.NodeStatus{Name: "worker-2", UID: "u2"}
		node.Taints = []journal.Taint{{Key: taint}}
		other := api.NodeStatus{Name: "worker-3", UID: "u3"}
		other.Taints = []journal.Taint{{Key: journal.TaintUnschedulable}}
		status.Nodes = []api.NodeStatus{other, node}
		var out strings.Builder
		if err := Things(&out, []api.ThingExplanation{thing}, status, Options{Words: vocabulary}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "kubectl uncordon worker-2 "); got != want || strings.Contains(out.String(), "uncordon worker-3") {
			t.Errorf("with taint %s it says\n%s", taint, out.String())
		}
	}
}

func TestAnExplanationOffersOnlyWhatWouldHelp(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*journal.ActionRecord)
		retry, cancel bool
	}{
		"it runs":            {func(*journal.ActionRecord) {}, false, true},
		"it waits":           {func(a *journal.ActionRecord) { a.Holds = map[string]journal.ActionHeld{"": {}} }, true, true},
		"it stalled":         {func(a *journal.ActionRecord) { a.Stalled = &journal.ActionStalled{} }, true, true},
		"past no return":     {func(a *journal.ActionRecord) { a.PastNoReturn, a.Stalled = true, &journal.ActionStalled{} }, true, false},
		"it is cancelled":    {func(a *journal.ActionRecord) { a.Cancelling = &journal.ActionCancelling{} }, false, false},
		"it is tried anyway": {func(a *journal.ActionRecord) { a.Steps = map[string]journal.StepRecord{"a": {NextTry: began}} }, true, true},
	} {
		action := journal.ActionRecord{ID: "x"}
		test.change(&action)
		said := strings.Join(commandLines(api.ThingExplanation{Actions: []journal.ActionRecord{action}}, api.Status{}, false), "\n")
		if strings.Contains(said, "ekco retry x") != test.retry || strings.Contains(said, "ekco cancel x") != test.cancel {
			t.Errorf("%s: it offers\n%s", name, said)
		}
	}
}

func TestAnExplanationSaysWhyItNeedNotBeSoAnyMore(t *testing.T) {
	for reason, want := range map[string]string{
		"":                                       "",
		"no operator runs: the last one stopped": "As of 2026-11-21T00:59:00Z (1m ago): no operator runs (look).\n\nnode worker-2 ",
	} {
		thing, status := aPurge()
		if reason != "" {
			status.AsOf = began.Add(-time.Minute)
			status.Problems = append(status.Problems, api.Problem{Kind: api.ProblemNotRunning, Reason: reason, Command: "look"})
		}
		var out strings.Builder
		if err := Things(&out, []api.ThingExplanation{thing}, status, Options{Words: vocabulary}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), "As of ") != (want != "") {
			t.Errorf("%q: it says\n%s", reason, out.String())
		}
	}
}

// TestAnExplanationSaysThatEKCOOnlyObserves: else what is open seems to be worked on.
func TestAnExplanationSaysThatEKCOOnlyObserves(t *testing.T) {
	thing, status := aPurge()
	status.Problems = append(status.Problems, api.Problem{Kind: api.ProblemSafeMode, Reason: "the journal was damaged: page 7", Command: "ekco journal accept"})
	var out strings.Builder
	if err := Things(&out, []api.ThingExplanation{thing}, status, Options{Words: vocabulary}); err != nil {
		t.Fatal(err)
	}
	if want := "SAFE MODE: the journal was damaged (ekco journal accept).\n\n"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("it does not begin with %q:\n%s", want, out.String())
	}
}
