package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// openOn returns an operator with a purge of worker-2, two actions about worker-3, and a
// worker-4 that nothing is done to.
func openOn() *fakeOperator {
	action := func(id, node string) journal.ActionRecord {
		return journal.ActionRecord{ID: id, Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject(node, "u-"+node)}
	}
	return &fakeOperator{status: api.Status{
		Operator: api.OperatorStatus{Running: true}, Nodes: []api.NodeStatus{{Name: "worker-2"}, {Name: "worker-3"}, {Name: "worker-4"}},
		Actions: []journal.ActionRecord{action(purgeID, "worker-2"), action("clear-worker-3-8", "worker-3"), action("purge-worker-3-9", "worker-3")},
	}}
}

func TestCancelAndRetryTakeTheNameOfWhatAnActionIsAbout(t *testing.T) {
	for _, word := range []string{"worker-2", "node/worker-2", "Node/worker-2", purgeID} {
		op := openOn()
		d := newDesk(t, op)
		d.expect(d.types("cancel", word), exitDone, purgeID+" (purge worker-2) is asked to stop; it has changed nothing\n", "")
		d.expect(d.types("retry", word), exitDone, purgeID+" (purge worker-2) is retried\n", "")
		want := []any{api.CancelRequest{Action: purgeID}, api.RetryRequest{Action: purgeID}}
		if diff := cmp.Diff(want, op.words); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
	op := openOn()
	d := newDesk(t, op)
	d.expect(d.types("cancel", "worker-3"), exitUsage, "", `worker-3 has 2 open actions; say which: "ekco cancel clear-worker-3-8" or "ekco cancel purge-worker-3-9"`)
	d.expect(d.types("retry", "worker-4"), exitFailed, "", "retry worker-4: it has no open action")
	d.expect(d.types("cancel", "worker-22"), exitFailed, "", `cancel "worker-22": no open action, node or component has this name; did you mean worker-2`)
	if len(op.words) > 0 {
		t.Errorf("the operator was told %v", op.words)
	}
}

func TestACancelSaysWhatBecomesOfWhatWasDone(t *testing.T) {
	for name, test := range map[string]struct {
		action journal.ActionRecord
		want   string
	}{
		"nothing was done": {journal.ActionRecord{}, "; it has changed nothing"},
		"a step is under way": {
			journal.ActionRecord{Steps: map[string]journal.StepRecord{"b": {Open: true}, "a": {Open: true}, "c": {DoneAt: noon}}},
			"; a, b end or are cut short; its changes so far stay: ekco history --action x -o tree",
		},
		"only what changes nothing has begun": {
			journal.ActionRecord{
				Plan: journal.Plan{Steps: []journal.PlannedStep{
					{ID: "wait-for-cancel", Does: "wait-for-cancel"}, {ID: "check", Does: "check"}, {ID: "a", Does: "a"},
				}},
				Steps: map[string]journal.StepRecord{"wait-for-cancel": {DoneAt: noon}, "check": {Open: true}},
			}, "; it has changed nothing",
		},
		"it is being taken back": {
			journal.ActionRecord{
				Plan: journal.Plan{
					Steps: []journal.PlannedStep{{ID: "check", Does: "check"}, {ID: "a", Does: "a"}},
					Undo:  []journal.PlannedStep{{ID: "undo-a", Does: "undo-a", Undoes: "a"}},
				},
				Steps: map[string]journal.StepRecord{"check": {Open: true}, "a": {Attempts: 1, Open: true}, "undo-a": {Attempts: 1, Open: true}},
			}, "; a ends or is cut short; its changes are undone by undo-a",
		},
		"it is taken back": {
			journal.ActionRecord{
				Plan:  journal.Plan{Steps: []journal.PlannedStep{{ID: "a"}}, Undo: []journal.PlannedStep{{ID: "undo-a", Undoes: "a"}}},
				Steps: map[string]journal.StepRecord{"a": {Attempts: 1, DoneAt: noon}},
			}, "; its changes are undone by undo-a",
		},
	} {
		test.action.ID = "x"
		if got := effectsText(test.action); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// passing is an operator whose action goes on as changed when it is asked to stop.
type passing struct {
	*fakeOperator
	change func(*journal.ActionRecord)
}

func (p passing) Do(ctx context.Context, command api.Command) error {
	p.change(&p.status.Actions[0])
	return p.fakeOperator.Do(ctx, command)
}

func TestACancelSaysWhatTheActionIsOnceItWasAskedToStop(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*journal.ActionRecord)
		code     int
		out, err string
	}{
		"past its point of no return by then": {
			func(a *journal.ActionRecord) { a.PastNoReturn = true }, exitFailed, "",
			"cancel " + purgeID + ": past the point of no return when it was asked to stop; it continues; follow it with: ekco history --action " + purgeID + " --follow\n",
		},
		"a step has begun": {
			func(a *journal.ActionRecord) { a.Steps = map[string]journal.StepRecord{"a": {Open: true}} }, exitDone,
			purgeID + " (purge worker-2) is asked to stop; a ends or is cut short; its changes so far stay", "",
		},
		"it has ended": {
			func(a *journal.ActionRecord) { a.ID = "another" }, exitDone, purgeID + " (purge worker-2) is asked to stop; it has changed nothing\n", "",
		},
	} {
		op := passing{openOn(), test.change}
		d := newDesk(t, nil)
		d.app.dial = func(context.Context, string, string) (operator, error) { return op, nil }
		d.expect(d.types("cancel", "worker-2"), test.code, test.out, test.err)
		if stopping := strings.Contains(d.out.String(), "asked to stop"); stopping != (test.code == exitDone) || len(op.words) != 1 {
			t.Errorf("%s: the operator was told %v, and the person\n%s", name, op.words, d.out)
		}
	}
}

func TestARetryOfWhatRunsSaysSoAndChangesNothing(t *testing.T) {
	runs := map[string]journal.StepRecord{"delete-node": {Open: true}}
	for name, test := range map[string]struct {
		change  func(*journal.ActionRecord)
		running bool
	}{
		"it runs":               {func(*journal.ActionRecord) {}, true},
		"it has not begun":      {func(a *journal.ActionRecord) { a.Steps = nil }, false},
		"another step waits":    {func(a *journal.ActionRecord) { a.Holds = map[string]journal.ActionHeld{"b": {}} }, false},
		"another step stalled":  {func(a *journal.ActionRecord) { a.Stalled = &journal.ActionStalled{} }, false},
		"it is being cancelled": {func(a *journal.ActionRecord) { a.Cancelling = &journal.ActionCancelling{} }, false},
		"another EKCO's":        {func(a *journal.ActionRecord) { a.Unreadable = "event 7" }, false},
		"another is to be tried": {func(a *journal.ActionRecord) {
			a.Steps = map[string]journal.StepRecord{"delete-node": {Open: true}, "b": {NextTry: noon}}
		}, false},
		"the only step was tried": {func(a *journal.ActionRecord) { a.Steps = map[string]journal.StepRecord{"delete-node": {NextTry: noon}} }, false},
	} {
		op := openOn()
		op.status.Actions[0].Steps = runs
		test.change(&op.status.Actions[0])
		d := newDesk(t, op)
		want := "is retried"
		if test.running {
			want = purgeID + " (purge worker-2) is running: delete-node; "
		}
		d.expect(d.types("retry", "worker-2"), exitDone, want, "")
		if told := len(op.words) > 0; told == test.running {
			t.Errorf("%s: the operator was told %v", name, op.words)
		}
	}
}

func TestWhatAnActionWaitsForIsSaidWhereItCanNeitherBeStoppedNorRetried(t *testing.T) {
	op := openOn()
	op.status.Actions[0].Steps, op.status.Actions[0].PastNoReturn = map[string]journal.StepRecord{"delete-node": {Open: true}}, true
	for missing, want := range map[string]string{"": ": delete-node; ", "waits for finalizer a/b": ": delete-node waits for finalizer a/b; ", "no answer": ": delete-node: no answer; "} {
		op.status.Progress = map[string]map[string]actions.Progress{purgeID: {"delete-node": {Missing: missing}}}
		d := newDesk(t, op)
		d.expect(d.types("retry", "worker-2"), exitDone, want, "")
		d.expect(d.types("cancel", "worker-2"), exitFailed, "", want)
	}
	if len(op.words) > 0 {
		t.Errorf("the operator was told %v", op.words)
	}
	err := pastNoReturnError(op.status, op.status.Actions[0], false)
	if text := err.Error(); !errors.Is(err, fsm.ErrPastNoReturn) || strings.Contains(text, "delete-node") || !strings.Contains(text, "no operator runs") {
		t.Errorf("without an operator it says %q", text)
	}
	if text := retriedText(false, true); !strings.HasPrefix(text, " will be retried when EKCO starts, ") {
		t.Errorf("without an operator it says %q", text)
	}
}

func TestAPauseSaysWhichOneItReplacesAndResumeWhichStay(t *testing.T) {
	op := openOn()
	op.status.Pauses = map[string]fsm.PauseState{"": {By: "cli:b@h", Reason: "switch"}, "worker-2": {By: "cli:c@h", Until: noon.Add(time.Hour)}, "worker-22": {}}
	d := newDesk(t, op)
	d.expect(d.types("pause", "worker-2", "--reason", "r", "--for", "30m"), exitDone,
		"paused worker-2 until 2026-11-21T12:30:00Z, replacing the pause until 2026-11-21T13:00:00Z by cli:c@h\n", "")
	d.expect(d.types("pause", "node/worker-2", "--reason", "r"), exitDone, "replacing the pause until 2026-11-21T13:00:00Z", "")
	d.expect(d.types("pause", "--reason", "r"), exitDone, `paused everything until "ekco resume", replacing the pause without end by cli:b@h: switch`, "")
	d.expect(d.types("pause", "worker-3", "--reason", "r"), exitDone, "paused worker-3 until \"ekco resume worker-3\"\n", "")
	d.expect(d.types("resume", "worker-3"), exitDone, "resumed worker-3; still paused: everything, node worker-2, node worker-22\n", "")
	op.status.Pauses = nil
	d.expect(d.types("resume"), exitDone, "resumed everything\n", "")
}

func TestAcceptSaysWhatEKCOGoesOnWithAndAsks(t *testing.T) {
	op := openOn()
	op.status.Journal.SafeMode = &journal.JournalSalvaged{Recovered: 1}
	op.status.Journal.LostFrom, op.status.Journal.SafeModeSince = noon.Add(-time.Hour), noon
	op.status.Actions = op.status.Actions[:1]
	op.status.Actions[0].Planned, op.status.Actions[0].RequestedBy, op.status.Actions[0].RequestedAt = true, "cli:b@h", noon.Add(-2*time.Hour)
	op.status.Actions[0].Plan.Steps = []journal.PlannedStep{{ID: "check"}, {ID: "delete-node"}}
	op.status.Actions[0].Steps = map[string]journal.StepRecord{"check": {DoneAt: noon}}
	d := newDesk(t, op)
	d.expect(d.types("journal", "accept"), exitDone, "accepted", "The events between 2026-11-21T11:00:00Z and 2026-11-21T12:00:00Z are lost.\n"+
		"EKCO resumes "+purgeID+" (purge worker-2), requested at 2026-11-21T10:00:00Z by cli:b@h, at step delete-node.\nNothing is paused. If you set a pause after 2026-11-21T11:00:00Z, set it again.\n")
	op.status.Journal.LostFrom = time.Time{}
	d.expect(d.types("journal", "accept"), exitDone, "accepted", "Some events before 2026-11-21T12:00:00Z are lost; since when is unknown.\nEKCO resumes")
	d.app.askable = true
	for answer, accepted := range map[string]bool{"y\n": true, "yes\n": true, "n\n": false, "\n": false, "": false} {
		op.words, d.app.stdin = nil, strings.NewReader(answer)
		code := d.types("journal", "accept")
		if done := len(op.words) == 1; done != accepted || (code == exitDone) != accepted || !strings.Contains(d.errOut.String(), "Accept the journal? [y/N]") {
			t.Errorf("%q: accepted %v, exit code %d: %s", answer, done, code, d.errOut)
		}
	}
	d.expect(d.types("journal", "accept", "--yes"), exitDone, "accepted", "EKCO resumes")
	if strings.Contains(d.errOut.String(), "[y/N]") {
		t.Errorf("it asks all the same: %s", d.errOut)
	}
	op.status.Actions, op.status.Pauses = nil, map[string]fsm.PauseState{"": {}}
	d.expect(d.types("journal", "accept", "--yes"), exitDone, "", "No action is open, so EKCO resumes none.\neverything stays paused.\n")
}

func TestATypoIsAnsweredWithWhatWasMeant(t *testing.T) {
	for typed, want := range map[string]string{
		"status --chek":                      "unknown flag: --chek; did you mean --check?\nRun \"ekco status --help\"",
		"status --component nodes":           "did you mean node?",
		"status -o jsn":                      "did you mean json?",
		"history --component polcy":          "did you mean policy?",
		"history --type step.dne":            "did you mean step.done",
		"journal verify --expct 3":           "did you mean --expect?\nekco: ",
		"statsu":                             "did you mean status?\nRun \"ekco --help\"",
		"pasue":                              "did you mean pause?",
		"statsu --help":                      "did you mean status?\nRun \"ekco --help\"",
		"journal verfy --help":               "did you mean verify?",
		"help purge":                         "did you mean purge-node?\nRun \"ekco --help\"",
		"help journal verfy":                 "did you mean verify?",
		"history --summary --follow":         "--summary cannot be combined",
		"history --summary -o tree":          "--summary cannot be combined",
		"history --local -o json":            "in UTC; leave out --local",
		"purge-node":                         "Run \"ekco purge-node --help\"",
		"explain --outptu json":              "did you mean --output?",
		"journal verify --expect x -o table": "want one of",
	} {
		d := newDesk(t, openOn())
		want = strings.TrimSuffix(want, "\nekco: ")
		d.expect(d.types(strings.Fields(typed)...), exitUsage, "", want)
	}
}

func TestWhatAStepWaitsForIsPrintedOnceItLasts(t *testing.T) {
	op := halfway(t)
	const holder = "waits for finalizer backup.example.com/slow on node worker-2"
	op.status.Progress[purgeID] = map[string]actions.Progress{"delete-node": {Missing: holder}}
	d := newDesk(t, op)
	f := &follower{purger: &purger{app: d.app, backend: op}, action: purgeID, step: "delete-node", sign: &statusLine{w: d.errOut}, reported: map[string]bool{}}
	now := noon
	d.app.now = func() time.Time { return now }
	f.began, f.stepBegan = now, now
	printed := func() int { return strings.Count(d.out.String(), holder) }
	var counts []int
	for range 4 {
		f.readProgress(t.Context())
		counts = append(counts, printed())
		now = now.Add(progressInterval)
	}
	if want := []int{0, 1, 1, 1}; !slices.Equal(counts, want) {
		t.Errorf("printed %v times, want %v:\n%s", counts, want, d.out)
	}
}

// counting is an operator that counts how often it is asked for its status.
type counting struct {
	*fakeOperator
	asked int
}

func (c *counting) Status(ctx context.Context) (api.Status, error) {
	c.asked++
	return c.fakeOperator.Status(ctx)
}

func TestWithoutATerminalALongStepIsAskedAboutSeldom(t *testing.T) {
	for terminal, want := range map[bool]int{false: 30 + 6, true: 60} {
		op := &counting{fakeOperator: halfway(t)}
		d := newDesk(t, nil)
		now := noon
		d.app.now = func() time.Time { return now }
		f := &follower{purger: &purger{app: d.app, backend: op}, action: purgeID, sign: &statusLine{w: d.errOut, terminal: terminal}, reported: map[string]bool{}}
		for name, from := range map[string]time.Duration{"first": 0, "second": time.Hour} {
			now, op.asked = noon.Add(from), 0
			f.printEvent(t.Context(), event(t, 1, purgeID, journal.TypeStepStarted, journal.StepStarted{Step: name, Attempt: 1}))
			f.progressAsked = time.Time{}
			for range 120 { // seconds
				f.readProgress(t.Context())
				now = now.Add(time.Second)
			}
			if op.asked != want {
				t.Errorf("on a terminal %v: in two minutes of the %s step it was asked %d times, want %d", terminal, name, op.asked, want)
			}
		}
	}
}

func TestAReadyNodeWhosePurgeNobodyWasAskedAboutCanBeCancelled(t *testing.T) {
	for name, test := range map[string]struct {
		askable bool
		args    []string
		unasked bool
	}{
		"without a terminal": {false, nil, true}, "with --force alone": {false, []string{"--force"}, true},
		"with --yes": {false, []string{"--yes"}, false}, "on a terminal": {true, nil, false},
	} {
		op := purging(t, journal.OutcomeDone)
		if test.unasked {
			op.explained.Plan.Steps = append([]journal.PlannedStep{{ID: "wait-for-cancel"}}, op.explained.Plan.Steps...)
		}
		d := newDesk(t, op)
		d.app.askable, d.app.stdin = test.askable, strings.NewReader("y\n")
		code := d.types(append([]string{"purge-node", "worker-2"}, test.args...)...)
		if asked := strings.Contains(string(op.request(t).Input), `"unasked":true`); asked != test.unasked || code != exitDone {
			t.Errorf("%s: exit code %d, asked for with %s", name, code, op.request(t).Input)
		}
		const said = "node worker-2 is ready, and no person confirmed the purge: it begins after 10s; cancel it with: ekco cancel worker-2\n"
		if strings.Contains(d.out.String(), said) != test.unasked {
			t.Errorf("%s: it said\n%s", name, d.out)
		}
	}
}

func TestADryRunAsksWhatThePurgeCosts(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained.Costs = []string{"osd.3 with all it holds", "a \x1b pod"}
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2", "--dry-run"), exitDone, "\nWHAT IT COSTS\n  osd.3 with all it holds\n  a \\x1b pod\n\nSTEPS\n", "")
	if len(op.asked) != 1 || !op.asked[0].Costs {
		t.Errorf("it asked %+v", op.asked)
	}
	d.types("purge-node", "worker-2")
	if len(op.asked) != 2 || op.asked[1].Costs {
		t.Errorf("without --dry-run it asked %+v", op.asked)
	}
}

func TestTheQuestionSaysWhatThePurgeCostsAndThatItIsForGood(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained.Checks, op.explained.Costs = []api.CheckResult{warning("StormBrake")}, []string{"lost: a volume"}
	d := newDesk(t, op)
	d.app.askable, d.app.stdin = true, &typing{answers: []string{"no\n", "no\n"}}
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "cost: lost: a volume\nThis removes node worker-2 for good; it cannot be undone.\nPurge node worker-2 anyway?")
	op.explained.Checks = nil
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "cost: lost: a volume\nThis removes node worker-2 for good; it cannot be undone.\nPurge node worker-2?")
	if len(op.asked) != 2 || !op.asked[0].Costs || !op.asked[1].Costs || len(op.requests) > 0 {
		t.Errorf("it asked %+v, requested %v", op.asked, op.requests)
	}
}

func TestTextIsWrappedToTheColumnsAndJSONIsNot(t *testing.T) {
	op := &fakeOperator{status: api.Status{Absent: []string{strings.Repeat("a limitation ", 20)}}}
	d := newDesk(t, op)
	longest := func(args ...string) (most int) {
		d.types(args...)
		for line := range strings.Lines(d.out.String()) {
			most = max(most, len(line)-1)
		}
		return most
	}
	for _, test := range []struct {
		columns string
		args    []string
		wraps   bool
	}{
		{"60", []string{"status"}, true}, {"60", []string{"status", "-o", "json"}, false}, {"", []string{"status"}, false}, {"x", []string{"status"}, false},
	} {
		d.env["COLUMNS"] = test.columns
		if most := longest(test.args...); (most <= 60) != test.wraps {
			t.Errorf("with COLUMNS=%s, %q has a line of %d characters:\n%s", test.columns, test.args, most, d.out)
		}
	}
}

func TestASummaryIsOfWhatWasAskedFor(t *testing.T) {
	op := &fakeOperator{past: []journal.Event{
		event(t, 1, purgeID, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode}),
		event(t, 2, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
	}}
	d := newDesk(t, op)
	d.expect(d.types("history", "--summary"), exitDone, "2026-11-21T11:00:01Z  1s    purge node worker-2 ("+purgeID+")  done\n", "")
	d.expect(d.types("history", "--summary", "--until", "yesterday"), exitDone, "No action, no refusal and no pause.\n", "")
	d.expect(d.types("history", "--local"), exitDone, "SEQ", "")
}

func TestAReportIsAPageForAFile(t *testing.T) {
	op := openOn()
	op.past = []journal.Event{
		event(t, 1, purgeID, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode}),
		event(t, 2, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
	}
	d := newDesk(t, op)
	d.expect(d.types("report"), exitDone, "<!DOCTYPE html>", "")
	d.expect(d.types("report"), exitDone, "2026-11-14T12:00:00Z to 2026-11-21T12:00:00Z", "")
	d.expect(d.types("report", "--since", "1h", "--node", "worker-2"), exitDone, "EKCO report of node worker-2", "")
	if query := op.queries[len(op.queries)-1]; query.Node != "worker-2" || !query.Since.Equal(noon.Add(-time.Hour)) {
		t.Errorf("it asked for %+v", query)
	}
	op.status.Journal.FirstTime = noon.Add(-48 * time.Hour)
	d.expect(d.types("report", "--since", "all"), exitDone, "2026-11-19T12:00:00Z to", "")
	d.expect(d.types("report", "--node", "worker-5"), exitFailed, "", `EKCO knows no node or component "worker-5"`)
	d.expect(d.types("report", "--since", "soon"), exitUsage, "", "--since is")
	d.app.stdoutTerminal = true
	d.expect(d.types("report"), exitUsage, "", "send it to a file, as in: ekco report > report.html")
}

func TestWithoutAWordEverythingThatIsWrongIsExplained(t *testing.T) {
	op := openOn()
	op.status.Now = noon
	op.status.Journal.Writable = true
	op.status.Actions[0].Stalled, op.status.Actions[0].StalledAt = &journal.ActionStalled{Step: "delete-node", Reason: "refused"}, noon.Add(-time.Minute)
	op.status.Actions[1].Holds = map[string]journal.ActionHeld{"": {Preflight: "Plan", Reason: "no answer"}}
	op.status.Next = []fsm.Upcoming{{Kind: journal.ActionClearNode, Subject: journal.NodeSubject("worker-4", "u"), At: noon.Add(time.Minute)}}
	d := newDesk(t, op)
	d.expect(d.types("explain"), exitDone, "NEEDS YOU: 1 problem; EKCO handles 1 more\n\npurge of worker-2 is stalled at delete-node: refused\n"+
		"  since    2026-11-21T11:59:00Z (1m)\n  what now after repairing the cause, run: ekco retry "+purgeID+"\n  type     ekco explain "+purgeID+"\n\npurge of worker-3 waits, because no answer (Plan)\n", "")
	d.expect(d.types("explain"), exitDone, "\nNEXT\n  clear node worker-4 at 2026-11-21T12:01:00Z (in 1m)\n", "")
	op.status.Actions, op.status.Next = nil, nil
	d.expect(d.types("explain"), exitDone, "OK: no problems, and nothing waits\n", "")
}

func TestABareNameMeansTheNodeOrAllThingsOfThatName(t *testing.T) {
	status := api.Status{
		Nodes:  []api.NodeStatus{{Name: "minio", UID: "1"}, {Name: "minio", UID: "2"}, {Name: "w"}},
		Things: []api.ThingStatus{{Machine: "minio", Name: "minio"}, {Machine: "csr", Name: "a/b"}, {Machine: "lamp", Name: "lamp"}, {Machine: "csr", Name: "lamp"}}, Actions: []journal.ActionRecord{{ID: "move-1"}},
	}
	for word, want := range map[string][]api.ThingRequest{
		"minio": {{Kind: "node", Name: "minio"}}, "lamp": {{Kind: "csr", Name: "lamp"}, {Kind: "lamp", Name: "lamp"}}, "w": {{Kind: "node", Name: "w"}}, "move-1": {{Action: "move-1"}},
		"a/b": {{Kind: "csr", Name: "a/b"}}, "csr/a/b": {{Kind: "csr", Name: "a/b"}}, "x": nil, "lamp/": nil, "/x": nil,
	} {
		if diff := cmp.Diff(want, resolveName(status, word)); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
}

func TestAnActionThatHasEndedIsExplainedByWhatItDid(t *testing.T) {
	op := &fakeOperator{past: []journal.Event{
		event(t, 1, purgeID, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode}),
		event(t, 2, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
	}}
	d := newDesk(t, op)
	d.expect(d.types("explain", purgeID), exitDone, "purge-node worker-2: done after 1s  ["+purgeID+"]", "")
	d.expect(d.types("explain", purgeID+"7"), exitFailed, "", "did you mean "+purgeID)
}
