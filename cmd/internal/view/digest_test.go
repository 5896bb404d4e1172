package view

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// digested returns the lines of a summary, with single blanks.
func digested(t *testing.T, events []journal.Event, options Options) []string {
	t.Helper()
	options.Words = vocabulary
	var lines []string
	for line := range strings.Lines(asText(t, events, "summary", options)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestASummaryTellsWhenTheAPIDidNotAnswer(t *testing.T) {
	s := &story{t: t}
	tell := func(of journal.Type, payload journal.Payload) {
		s.tell(journal.ClusterSubject, "", "operator", 0, of, payload)
	}
	tell(journal.TypeAPIRecovered, journal.APIRecovered{LostAt: began.Add(-time.Minute)})
	tell(journal.TypeAPILost, journal.APILost{Error: "connection refused"})
	tell(journal.TypeAPIRecovered, journal.APIRecovered{LostAt: began.Add(time.Second)})
	tell(journal.TypeAPILost, journal.APILost{Error: "timeout"})
	tell(journal.TypeAPILost, journal.APILost{Error: "no route"})
	want := []string{
		"BEGAN TOOK WHAT OUTCOME",
		"2026-11-21T00:59:00Z 1m the Kubernetes API did not answer it answers again",
		"2026-11-21T01:00:01Z 1s the Kubernetes API did not answer it answers again (connection refused)",
		"2026-11-21T01:00:03Z 7s so far the Kubernetes API did not answer still so (no route)",
	}
	if diff := cmp.Diff(want, digested(t, s.events, Options{Now: began.Add(10 * time.Second)})); diff != "" {
		t.Error(diff)
	}
}

func TestASummaryTellsWhichNodesWereLost(t *testing.T) {
	s := &story{t: t}
	change := func(node string, to journal.NodeState, since time.Time) {
		s.tell(journal.NodeSubject(node, "uid-"+node), "", "operator", 0, journal.TypeNodeTransitioned, journal.NodeTransitioned{To: to, Since: since})
	}
	change("w1", fsmnode.Unknown, began.Add(-time.Minute))
	change("w1", fsmnode.Clearing, time.Time{})
	change("w1", fsmnode.Unknown, time.Time{})
	change("w1", fsmnode.Healthy, time.Time{})
	change("w2", fsmnode.Unknown, time.Time{})
	change("w2", fsmnode.Purging, time.Time{})
	change("w2", fsmnode.Purged, time.Time{})
	change("w3", fsmnode.Unknown, time.Time{})
	change("w4", fsmnode.Healthy, time.Time{})
	want := []string{
		"BEGAN TOOK WHAT OUTCOME",
		"2026-11-21T00:59:00Z 1m3s node w1 was lost back",
		"2026-11-21T01:00:04Z 2s node w2 was lost purged",
		"2026-11-21T01:00:07Z 3s so far node w3 was lost still lost",
	}
	if diff := cmp.Diff(want, digested(t, s.events, Options{Now: began.Add(10 * time.Second)})); diff != "" {
		t.Error(diff)
	}
}

func TestASummaryTellsWhenAnActionNeededAPerson(t *testing.T) {
	s := &story{t: t}
	tell := func(kind journal.Type, payload any) {
		s.tell(journal.NodeSubject("w1", "u1"), "purge-w1-1", "operator", 0, kind, payload)
	}
	held := func(preflight string, after time.Duration) {
		tell(journal.TypeActionHeld, journal.ActionHeld{Preflight: preflight, Step: "a", Reason: "r", NeedsPersonAfter: journal.Duration(after)})
	}
	tell(journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	held("Short", time.Hour)
	tell(journal.TypeActionReleased, journal.ActionReleased{Preflight: "Short", Step: "a"})
	held("Long", time.Second)
	held("Other", time.Second)
	s.paused = time.Minute
	tell(journal.TypeStepStarted, journal.StepStarted{Step: "b"})
	tell(journal.TypeActionReleased, journal.ActionReleased{Preflight: "Other", Step: "a"})
	held("Never", 0)
	tell(journal.TypeActionStalled, journal.ActionStalled{Step: "b", Reason: "it is forbidden"})
	tell(journal.TypeActionRetried, journal.ActionRetried{})
	held(journal.HoldNextAttempt, 0)
	s.paused += 6 * time.Minute
	tell(journal.TypeStepDone, journal.StepDone{Step: "a"})
	tell(journal.TypeActionStalled, journal.ActionStalled{Step: "c"})
	want := []string{
		"BEGAN TOOK WHAT OUTCOME",
		"2026-11-21T01:00:00Z 10m so far purge node w1 (purge-w1-1) stalled at c",
		"2026-11-21T01:00:04Z 1m2s NEEDS YOU: purge node w1 (purge-w1-1) waits: r (Long)",
		"2026-11-21T01:01:08Z 1s NEEDS YOU: purge node w1 (purge-w1-1) stalled at b: it is forbidden",
		"2026-11-21T01:06:10Z 1m1s NEEDS YOU: purge node w1 (purge-w1-1) waits: r (NextAttempt)",
	}
	if diff := cmp.Diff(want, digested(t, s.events, Options{Now: began.Add(10 * time.Minute)})); diff != "" {
		t.Error(diff)
	}
}

func TestASummaryHasALineForEachActionRefusalAndPause(t *testing.T) {
	node, other := journal.NodeSubject("w1", "u1"), journal.NodeSubject("w2", "u2")
	s := &story{t: t}
	s.tell(node, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionClearNode, Rule: "Settling", Reason: "it has started"})
	s.tell(node, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionClearNode, Rule: "Excluded"})
	s.tell(journal.ClusterSubject, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "switch", Until: began.Add(6 * time.Second)})
	s.tell(node, "", "operator", 0, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionClearNode, Rule: "Excluded"})
	s.tell(node, "clear-w1-5", "operator", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionClearNode})
	s.tell(node, "clear-w1-5", "operator", 0, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: "it is back"})
	s.tell(other, "purge-w2-7", "cli:a@h", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	s.tell(other, "purge-w2-7", "operator", 0, journal.TypeActionHeld, journal.ActionHeld{Preflight: "Healthy", Reason: "1 pg"})
	s.tell(other, "", "cli:a@h", 0, journal.TypeActionRefused, journal.ActionRefused{Kind: journal.ActionPurgeNode, Rule: "SafeMode", Reason: "damaged"})
	s.tell(node, "", "cli:b@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "disk"})
	s.tell(node, "", "cli:c@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "longer"})
	s.tell(node, "", "cli:c@h", 0, journal.TypePauseCleared, journal.PauseCleared{})
	s.tell(node, "clear-w1-2", "operator", 0, journal.TypeStepStarted, journal.StepStarted{Step: "x", Attempt: 1})
	want := []string{
		"BEGAN TOOK WHAT OUTCOME",
		"2026-11-21T01:00:00Z 1s clear node w1: blocked by Settling then Excluded (it has started)",
		"2026-11-21T01:00:01Z 2s clear node w1: blocked by Excluded no longer",
		"2026-11-21T01:00:02Z 4s cli:a@h paused everything ended as planned (switch)",
		"2026-11-21T01:00:04Z 1s clear node w1 (clear-w1-5) abandoned: it is back",
		"2026-11-21T01:00:06Z 54s so far purge node w2 (purge-w2-7) waits: 1 pg (Healthy)",
		"2026-11-21T01:00:08Z 0s cli:a@h asked to purge node w2 refused by SafeMode: damaged",
		"2026-11-21T01:00:09Z 1s cli:b@h paused node w1 replaced by cli:c@h (disk)",
		"2026-11-21T01:00:10Z 1s cli:c@h paused node w1 ended by cli:c@h (longer)",
		"before 2026-11-21T01:00:12Z 48s so far clear-w1-2 open",
	}
	if diff := cmp.Diff(want, digested(t, s.events, Options{Now: began.Add(time.Minute)})); diff != "" {
		t.Error(diff)
	}
	if got := digested(t, nil, Options{Now: began}); len(got) != 1 || got[0] != "No action, no refusal and no pause." {
		t.Errorf("of nothing: %q", got)
	}
}

func TestASummarySaysOfWhatBeganEarlierWhatItIsAndSinceWhen(t *testing.T) {
	s := &story{t: t}
	node := journal.NodeSubject("w1", "u1")
	s.tell(node, "purge-w1-1", "cli:a@h", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	s.tell(node, "purge-w1-1", "operator", 0, journal.TypeStepStarted, journal.StepStarted{Step: "x", Attempt: 1})
	options := Options{Now: began.Add(time.Minute), Origin: func(string) (journal.Event, bool) { return s.events[0], true }}
	want := "2026-11-21T01:00:00Z 1m so far purge node w1 (purge-w1-1) open"
	if got := digested(t, s.events[1:], options); len(got) != 2 || got[1] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimesAreShownInTheZoneThatIsAskedFor(t *testing.T) {
	s := &story{t: t}
	s.tell(journal.ClusterSubject, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "at 2026-99-99T99:99:99Z", Until: began})
	east := time.FixedZone("east", 2*60*60)
	for _, form := range []string{"table", "wide", "tree", "summary"} {
		got := asText(t, s.events, form, Options{Words: vocabulary, Zone: east, Now: began})
		if !strings.Contains(got, "2026-11-21T03:00:00+02:00  ") || strings.Contains(got, "01:00:00Z") || !strings.Contains(got, "2026-99-99T99:99:99Z") {
			t.Errorf("%s: in the east it is\n%s", form, got)
		}
	}
	table := asText(t, s.events, "table", Options{Words: vocabulary, Zone: east})
	head, row, _ := strings.Cut(table, "\n")
	if strings.Index(head, "TYPE") != strings.Index(row, "pause.set") {
		t.Errorf("the columns do not stand below their heads:\n%s", table)
	}
}

func TestATreeFoldsWhatRepeats(t *testing.T) {
	node := journal.NodeSubject("w1", "u1")
	s := &story{t: t}
	ready := journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}
	lost := journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker, Taints: []journal.Taint{{Key: journal.TaintNotReady, Effect: "NoSchedule"}}}}
	for range 3 {
		s.tell(node, "", "observer/node", 0, journal.TypeNodeObserved, lost)
		s.tell(node, "", "observer/node", 0, journal.TypeNodeObserved, ready)
	}
	s.tell(journal.ClusterSubject, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "r"})
	s.tell(node, "", "observer/node", 0, journal.TypeNodeObserved, ready)
	got := asText(t, s.events, "tree", Options{Words: vocabulary})
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "(3 times, last at 2026-11-21T01:00:04Z)") || !strings.HasSuffix(lines[1], "is ready (3 times, last at 2026-11-21T01:00:05Z)") ||
		!strings.Contains(lines[2], "paused") || !strings.HasSuffix(lines[3], "is ready") {
		t.Errorf("the tree is\n%s", got)
	}
	if live := asText(t, s.events, "tree", Options{Words: vocabulary, Live: true}); strings.Count(live, "\n") != len(s.events) {
		t.Errorf("who follows does not see each:\n%s", live)
	}
}

func TestWhatIsWaitedWithIsBounded(t *testing.T) {
	s := &story{t: t}
	for range maxFacts {
		s.tell(journal.NodeSubject("w"+strings.Repeat("x", len(s.events)), "u"), "", "observer/node", 0, journal.TypeNodeGone, journal.NodeGone{})
	}
	var out bytes.Buffer
	tree := newTree(&out, Options{Words: vocabulary})
	s.tell(journal.NodeSubject("last", "u"), "", "observer/node", 0, journal.TypeNodeGone, journal.NodeGone{})
	for _, e := range s.events {
		if err := tree.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Count(out.String(), "\n") != maxFacts || len(tree.facts) != 1 {
		t.Errorf("%d lines are shown, %d waited with", strings.Count(out.String(), "\n"), len(tree.facts))
	}
}

func TestATreeHasWhatAnActionWaitedForInIt(t *testing.T) {
	node, other := journal.NodeSubject("w1", "u1"), journal.NodeSubject("w2", "u2")
	const purge = "purge-w1-3"
	s := &story{t: t}
	s.tell(node, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionPurgeNode, Rule: "Cooldown", Reason: "a purge has just ended"})
	s.tell(other, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionPurgeNode, Rule: "Excluded", Reason: "of the other"})
	s.tell(node, "", "operator", 0, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionPurgeNode, Rule: "Cooldown"})
	s.tell(node, purge, "operator", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	hold := func(reason string) journal.ActionHeld {
		return journal.ActionHeld{Step: "delete-node", Preflight: "Healthy", Reason: reason}
	}
	s.tell(node, purge, "operator", 0, journal.TypeActionHeld, hold("3 of 4"))
	s.tell(node, purge, "operator", 0, journal.TypeActionHeld, hold("2 of 4"))
	s.tell(other, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "the other"})
	s.tell(node, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "this one"})
	s.tell(journal.ClusterSubject, "", "cli:a@h", 0, journal.TypePauseSet, journal.PauseSet{Reason: "all"})
	s.tell(node, purge, "operator", 0, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 1})
	s.tell(node, purge, "operator", 0, journal.TypeActionHeld, journal.ActionHeld{Step: "b", Preflight: "Other", Reason: "now"})
	branch := func() string {
		_, branch, _ := strings.Cut(asText(t, s.events, "tree", Options{Words: vocabulary}), "[purge-w1-3]")
		return branch
	}
	got := branch()
	for _, want := range []string{
		"blocked before by Cooldown for 2s: a purge has just ended", "waited 5s before delete-node: 2 of 4 (Healthy) (the last of 2 reasons)",
		"├─ cli:a@h paused node w1: this one", "├─ cli:a@h paused everything: all", "└─ waits since 2026-11-21T01:00:10Z before b: now (Other)",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("there is no %q, or several, in\n%s", want, got)
		}
	}
	if strings.Contains(got, "─ cli:a@h paused node w2") || strings.Contains(got, "of the other") {
		t.Errorf("it has what is about another:\n%s", got)
	}
	s.tell(node, purge, "operator", 0, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})
	if got := branch(); !strings.Contains(got, "waited 1s before b: now (Other)") {
		t.Errorf("what has ended still waits:\n%s", got)
	}
}

func TestARuleThatWasLiftedLongAgoDidNotBlockAnAction(t *testing.T) {
	s := &story{t: t}
	s.tell(journal.ClusterSubject, "", "operator", 0, journal.TypePolicyRefused, journal.PolicyRefused{Kind: journal.ActionPurgeNode, Rule: "StormBrake"})
	s.tell(journal.ClusterSubject, "", "operator", 0, journal.TypePolicyLifted, journal.PolicyLifted{Kind: journal.ActionPurgeNode, Rule: "StormBrake"})
	s.tell(journal.NodeSubject("w1", "u1"), "purge-1", "operator", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode})
	for after, blocked := range map[time.Duration]bool{maxLiftedAge: true, maxLiftedAge + time.Second: false} {
		s.events[2].Time = s.events[1].Time.Add(after)
		if got := asText(t, s.events, "tree", Options{Words: vocabulary}); strings.Contains(got, "blocked before by StormBrake") != blocked {
			t.Errorf("%s after the rule was lifted:\n%s", after, got)
		}
	}
}

func asText(t *testing.T, events []journal.Event, form string, options Options) string {
	t.Helper()
	return string(show(t, events, form, options))
}

func TestAnotherReasonToWaitEndsTheFormer(t *testing.T) {
	s := &story{t: t}
	for _, preflight := range []string{"First", "Second"} {
		s.tell(journal.NodeSubject("w1", "u1"), "purge-1", "operator", 0, journal.TypeActionHeld, journal.ActionHeld{Step: "a", Preflight: preflight})
	}
	got := asText(t, s.events, "tree", Options{Words: vocabulary})
	if !strings.Contains(got, "waited 1s before a: check First") || !strings.Contains(got, "waits since 2026-11-21T01:00:01Z before a: check Second") {
		t.Errorf("the tree is\n%s", got)
	}
}

func TestASummarySaysOfWhichTimeNothingIsKnown(t *testing.T) {
	s := &story{t: t}
	s.tell(journal.ClusterSubject, "", "operator", 0, journal.TypeJournalSalvaged, journal.JournalSalvaged{LastSeq: 7})
	s.tell(journal.ClusterSubject, "", "operator", 0, journal.TypeJournalOutdated, journal.JournalOutdated{})
	got := digested(t, s.events, Options{Now: began, Lookup: func(seq uint64) (journal.Event, bool) {
		return journal.Event{Seq: seq, Time: began.Add(-time.Hour)}, seq == 7
	}})
	if len(got) != 3 || !strings.HasPrefix(got[1], "2026-11-21T00:00:00Z 1h") || !strings.HasSuffix(got[1], " the journal was damaged the events of that time are lost") ||
		!strings.HasSuffix(got[2], " the journal lost its newest events some of the events before it are lost") {
		t.Errorf("it says\n%s", strings.Join(got, "\n"))
	}
}

// TestAStepThatCouldNotDoItsWorkIsShownAsNotDone: the node that it was for could not be changed.
func TestAStepThatCouldNotDoItsWorkIsShownAsNotDone(t *testing.T) {
	s := &story{t: t}
	const id = "change-lb-cluster-1"
	s.tell(journal.Kubeconfigs, id, "cli:root@p1", 0, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionChangeLoadBalancer})
	s.tell(journal.Kubeconfigs, id, "operator", 1, journal.TypeStepStarted, journal.StepStarted{Step: "kubeconfig w1", Attempt: 1})
	s.tell(journal.Kubeconfigs, id, "operator", 1, journal.TypeStepDone, journal.StepDone{Step: "kubeconfig w1", Attempt: 1, Outputs: []byte(`{"missing":"node w1 is away"}`)})
	s.tell(journal.Kubeconfigs, id, "operator", 1, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomePartial, Reason: "node w1 is left alone"})
	if got := asText(t, s.events, "tree", Options{Words: vocabulary}); !regexp.MustCompile(`kubeconfig w1 +not done .*node w1 is away`).MatchString(got) {
		t.Errorf("the tree is\n%s", got)
	}
	if got := asText(t, s.events, "tree", Options{Words: vocabulary, Color: true}); !strings.Contains(got, "\x1b[31mnot done") {
		t.Errorf("it is not red: %q", got)
	}
	if got := asText(t, s.events, "table", Options{Words: vocabulary}); !strings.Contains(got, "kubeconfig w1 is not done: node w1 is away") {
		t.Errorf("the table is\n%s", got)
	}
	if got := asText(t, s.events, "table", Options{Words: vocabulary, Color: true}); strings.Contains(got, "\x1b[32m") || !strings.Contains(got, "\x1b[31mstep.done") || !strings.Contains(got, "\x1b[33maction.ended") {
		t.Errorf("the table is green where nothing was done: %q", got)
	}
}
