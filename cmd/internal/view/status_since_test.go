package view

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestSafeModeSaysBetweenWhichTimesNothingIsKnown(t *testing.T) {
	status := api.Status{Journal: api.JournalStatus{SafeMode: &journal.JournalSalvaged{Recovered: 1}, LostFrom: began, SafeModeSince: began.Add(time.Hour)}}
	const want = "The events between 2026-11-21T01:00:00Z and 2026-11-21T02:00:00Z are lost."
	if said := strings.Join(safeModeLines(status, style{}), "\n"); !strings.Contains(said, want) {
		t.Errorf("it says\n%s", said)
	}
	status.Journal.LostFrom = time.Time{}
	const nobody = "\n  Some events before 2026-11-21T02:00:00Z are lost; since when is unknown.\n"
	if said := strings.Join(safeModeLines(status, style{}), "\n"); !strings.Contains(said, nobody) || strings.Contains(said, "between") {
		t.Errorf("where nobody knows it says\n%s", said)
	}
}

func TestSafeModeGuessesHowEventsWereLostOnlyWhereNoDamageSaysIt(t *testing.T) {
	status := api.Status{Journal: api.JournalStatus{Outdated: &journal.JournalOutdated{}}}
	const guess = "An older copy of the file was restored"
	if said := strings.Join(safeModeLines(status, style{}), "\n"); !strings.Contains(said, guess) {
		t.Errorf("it says\n%s", said)
	}
	status.Journal.SafeMode = &journal.JournalSalvaged{Recovered: 1}
	if said := strings.Join(safeModeLines(status, style{}), "\n"); strings.Contains(said, guess) || !strings.Contains(said, "lost its newest events") {
		t.Errorf("of a damaged one it says\n%s", said)
	}
}

// TestOfAJournalWithoutEventsTheMirrorSaysHowManyAreLost: the file cannot.
func TestOfAJournalWithoutEventsTheMirrorSaysHowManyAreLost(t *testing.T) {
	status := api.Status{Journal: api.JournalStatus{SafeMode: &journal.JournalSalvaged{}, Outdated: &journal.JournalOutdated{Gone: "j", Mirrored: journal.Position{Seq: 13}, MirroredAt: began}}}
	const want = "0 events recovered, at least 13 lost, up to 2026-11-21T01:00:00Z or later."
	if said := strings.Join(safeModeLines(status, style{}), "\n"); !strings.Contains(said, want) {
		t.Errorf("it says\n%s", said)
	}
}

func TestWhatWaitsSaysSinceWhen(t *testing.T) {
	action := journal.ActionRecord{
		ID: "a", Holds: map[string]journal.ActionHeld{"x": {Preflight: "P", Step: "x", Reason: "r"}}, HeldSince: map[string]time.Time{"x": began},
		Stalled: &journal.ActionStalled{Step: "y", Reason: "s"}, StalledAt: began.Add(time.Minute),
	}
	said := strings.Join(Waits(api.Status{}, action, vocabulary), "\n")
	for _, want := range []string{"waits before x: r (P) (since 2026-11-21T01:00:00Z); ", "stalled at y: s (since 2026-11-21T01:01:00Z); after repairing"} {
		if !strings.Contains(said, want) {
			t.Errorf("there is no %q in\n%s", want, said)
		}
	}
	action.HeldSince, action.StalledAt = nil, time.Time{}
	if said := strings.Join(Waits(api.Status{}, action, vocabulary), "\n"); strings.Contains(said, "since") {
		t.Errorf("where nobody knows it says\n%s", said)
	}
}

func TestALateAttemptIsNotExplainedTwice(t *testing.T) {
	for want, step := range map[string]journal.StepRecord{
		"x: attempt 1 ended after 30s":                                             {Attempts: 2, Open: true, LastError: "no success within 30s: waits for f"},
		"x failed before attempt 2, which is running: no success within 30s: else": {Attempts: 2, Open: true, LastError: "no success within 30s: else"},
		"x failed before attempt 2, which is running: refused: waits for f":        {Attempts: 2, Open: true, LastError: "refused: waits for f"},
		"x failed (attempt 2): no success within 30s: waits for f":                 {Attempts: 2, LastError: "no success within 30s: waits for f"},
	} {
		status := api.Status{Operator: api.OperatorStatus{PID: 1}, Progress: map[string]map[string]actions.Progress{"a": {"x": {Missing: "waits for f"}}}}
		action := journal.ActionRecord{ID: "a", Steps: map[string]journal.StepRecord{"x": step}}
		if said := strings.Join(Waits(status, action, vocabulary), "\n"); said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
}

func TestTheAttemptThatIsShownIsTheOneUnderWay(t *testing.T) {
	at, runs := began, api.OperatorStatus{PID: 1}
	for want, step := range map[string]journal.StepRecord{
		"x failed before attempt 3, which is running: no":            {Attempts: 3, Open: true, LastError: "no"},
		"x failed before the retry that a user requested: no":        {Attempts: 1, Open: true, LastError: "no"},
		"x failed (attempt 3), next try at 2026-11-21T01:00:00Z: no": {Attempts: 3, NextTry: at, LastError: "no"},
		"x failed (attempt 3): no":                                   {Attempts: 3, LastError: "no"},
	} {
		if said := strings.Join(Waits(api.Status{Now: began.Add(-time.Second), Operator: runs}, journal.ActionRecord{ID: "a", Steps: map[string]journal.StepRecord{"x": step}}, vocabulary), "\n"); said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
	again := journal.ActionRecord{ID: "a", Steps: map[string]journal.StepRecord{"x": {Attempts: 3, NextTry: at, LastError: "no"}}}
	for want, status := range map[string]api.Status{
		"x failed (attempt 3), next try now: no":                             {Now: at, Operator: runs},
		"x failed (attempt 3), next try when the Kubernetes API answers: no": {Now: at.Add(-time.Second), Operator: runs, API: fsm.APIState{LostAt: at.Add(-time.Minute)}},
		"x failed (attempt 3), next try when EKCO works again: no":           {Now: at},
	} {
		if told := strings.Join(thingLines(api.ThingExplanation{Now: status.Now, Actions: []journal.ActionRecord{again}}, status, Options{Words: vocabulary}, style{}), "\n"); !strings.Contains(told, want) {
			t.Errorf("explained it says\n%s\nwant %q", told, want)
		}
		if said := strings.Join(Waits(status, again, vocabulary), "\n"); said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
	cutOff := journal.ActionRecord{ID: "a", Steps: map[string]journal.StepRecord{"x": {Attempts: 3, Open: true, LastError: "no"}}}
	if said, want := strings.Join(Waits(api.Status{}, cutOff, vocabulary), "\n"), "x failed before attempt 3, which was running when EKCO last worked: no"; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
	if said := Waits(api.Status{Operator: runs, Journal: api.JournalStatus{Outdated: &journal.JournalOutdated{}}}, cutOff, vocabulary); !strings.Contains(said[0], "when EKCO last worked") {
		t.Errorf("in safe mode it says %q", said)
	}
	stalled := journal.ActionRecord{ID: "a", Stalled: &journal.ActionStalled{Step: "x", Reason: "failed 10 times: no"}, Steps: map[string]journal.StepRecord{"x": {Attempts: 10, LastError: "no"}}}
	if said := Waits(api.Status{}, stalled, vocabulary); len(said) != 1 || !strings.HasPrefix(said[0], "stalled at x: failed 10 times: no; ") {
		t.Errorf("of a stalled step it says %q", said)
	}
	status := api.Status{
		Actions: []journal.ActionRecord{{ID: "a", Steps: map[string]journal.StepRecord{"x": {Attempts: 2, Open: true}, "y": {Attempts: 1, Open: true}}}},
		Progress: map[string]map[string]actions.Progress{"a": {
			"x": {Missing: "waits for finalizer f"}, "y": {Done: 1, Total: 2, Unit: "pods", Missing: "pod b has not ended"},
		}},
	}
	if got, want := strings.Join(Progress(status, "a"), "\n"), "x (attempt 2): waits for finalizer f\ny: 1 of 2 pods; pod b has not ended"; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}

func TestStepsThatDoTheSameTakeOneLineUnlessItIsWide(t *testing.T) {
	lines := []stepLine{{"delete-pod a/b", "b"}, {"delete-pod a/c", "c"}, {"check", "k"}, {"delete-pod a/d", "d"}}
	if got, want := strings.Join(stepTexts(lines, false), "\n"), "b (and 2 more steps like it: ekco status -o wide)\nk"; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(stepTexts(lines, true), ""); got != "bckd" {
		t.Errorf("wide it says %q", got)
	}
	status := api.Status{Actions: []journal.ActionRecord{{ID: "a", Steps: map[string]journal.StepRecord{
		"delete-pod a/b": {Attempts: 1, LastError: "no"}, "delete-pod a/c": {Attempts: 1, LastError: "no"},
	}}}}
	for format, want := range map[string]int{"table": 1, "wide": 2} {
		var out strings.Builder
		if err := Status(&out, status, format, StatusOptions{Words: vocabulary}); err != nil || strings.Count(out.String(), " failed (attempt 1): no") != want {
			t.Errorf("as %s (%v) it says\n%s", format, err, out.String())
		}
	}
}
