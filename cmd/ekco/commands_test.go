package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

func TestBareEkcoPrintsItsVersionOnStandardError(t *testing.T) {
	d := newDesk(t, nil)
	d.expect(d.types(), exitDone, "", "EKCO v")
	if d.out.Len() != 0 {
		t.Errorf("standard output has %q", d.out)
	}
	d.expect(d.types("version"), exitDone, "EKCO v", "")
	d.expect(d.types("version", "-o", "json"), exitDone, `"version": "v`, "")
}

func TestACommandLineThatMakesNoSenseIsToldFromAFailure(t *testing.T) {
	for _, args := range [][]string{
		{"bogus"},
		{"purge-node"},
		{"purge-node", "a", "b"},
		{"purge-node", "a", "-o", "json"},
		{"completion", "foo"},
		{"version", "--log_level", "silly"},
		{"status", "--log-level", "silly"},
		{"status", "--bogus"},
		{"status", "-o", "xml"},
		{"history", "--since", "yesterday"},
		{"history", "--type", "moon.*"},
		{"history", "--component", "moon"},
		{"history", "--component", "node", "--type", "step.*"},
		{"history", "--follow", "--reverse"},
		{"history", "--limit", "-1"},
		{"history", "--limit", "0"},
		{"history", "--since", "1h", "--until", "2h"},
		{"journal", "export", "-", "--since", "2026-11-21", "--until", "2026-11-20"},
		{"pause"},
		{"retry"},
		{"purge-node", "a", "--min_ready_master_nodes=0"},
	} {
		d := newDesk(t, &fakeOperator{})
		if code := d.types(args...); code != exitUsage || d.errOut.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, d.errOut)
		}
	}
}

func TestFlagsAreSpelledBothWays(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	d := newDesk(t, op)
	d.expect(d.types("--log-level", "debug", "purge-node", "worker-2", "--dry_run"), exitDone, "node_uid: u2", "")
	d.expect(d.types("purge-node", "worker-2", "--no_wait", "--min-ready-master-nodes=1"), exitDone, "the operator goes on", "")
	if got := op.requests[0].MinReadyPrimaries; got == nil || *got != 1 {
		t.Errorf("--min-ready-master-nodes was passed on as %v", got)
	}
	for _, test := range [][]string{{"purge-node", "--no-wait"}, {"purge-node", "--min_ready_master_nodes"}, {"operator", "--clear_after"}} {
		d.expect(d.types(test[0], "--help"), exitDone, test[1], "")
	}
	d.expect(d.types("operator", "--clear-after", "silly"), exitUsage, "", "clear_after is \"silly\"")
}

func TestLogLevelsAreTheFourThatPeopleKnow(t *testing.T) {
	d := newDesk(t, nil)
	log, err := d.app.logger("debug")
	if err != nil {
		t.Fatal(err)
	}
	for level, want := range map[slog.Level]string{
		-5: "", -4: `"level":"DEBUG"`, -2: `"level":"DEBUG"`, 0: `"level":"INFO"`, 3: `"level":"INFO"`, 4: `"level":"WARN"`, 9: `"level":"ERROR"`,
	} {
		d.errOut.Reset()
		log.Log(t.Context(), level, "said", "level", "of water")
		if !strings.Contains(d.errOut.String(), want) || (want == "") != (d.errOut.Len() == 0) || want != "" && !strings.Contains(d.errOut.String(), "of water") {
			t.Errorf("level %d: wrote %q, want %s", level, d.errOut, want)
		}
	}
}

func TestHelpListsWhatIsBuiltAndNothingElse(t *testing.T) {
	d := newDesk(t, nil)
	d.types("--help")
	var listed []string
	_, list, _ := strings.Cut(d.out.String(), "Available Commands:\n")
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			break
		}
		listed = append(listed, fields[0])
	}
	want := []string{"cancel", "completion", "help", "history", "journal", "operator", "pause", "purge-node", "resume", "retry", "status", "version"}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, cmd := range newRootCommand(newApp()).Commands() {
		if !cmd.Hidden && cmd.Example == "" && cmd.Name() != "help" && cmd.Name() != "completion" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
}

func TestHistoryAsksForWhatItsFlagsSay(t *testing.T) {
	for _, test := range []struct {
		args []string
		want journal.Query
	}{
		{nil, journal.Query{Since: noon.Add(-24 * time.Hour)}},
		{[]string{"--since", "all"}, journal.Query{}},
		{[]string{"--node", "w"}, journal.Query{Node: "w"}},
		{[]string{"--action", "a"}, journal.Query{Action: "a"}},
		{[]string{"--since", "90000s", "--until", "2026-11-21"}, journal.Query{Since: noon.Add(-25 * time.Hour), Until: noon.Add(-12 * time.Hour)}},
		{[]string{"--since", "7d"}, journal.Query{Since: noon.Add(-7 * 24 * time.Hour)}},
		{[]string{"--since", "2026-11-21T11:00:00+01:00"}, journal.Query{Since: noon.Add(-2 * time.Hour)}},
		{[]string{"--reverse", "--limit", "3"}, journal.Query{Reverse: true, Limit: 3}},
		{[]string{"--limit", "3"}, journal.Query{Reverse: true, Limit: 3}},
		{[]string{"--type", "step.*,journal.created"}, journal.Query{Types: []journal.Type{"journal.created", "step.done", "step.failed", "step.started"}}},
		{[]string{"--component", "policy"}, journal.Query{Types: []journal.Type{"pause.cleared", "pause.set", "policy.lifted", "policy.refused"}}},
		{[]string{"--component", "action", "--type", "*ed"}, journal.Query{Types: []journal.Type{
			"action.adopted", "action.cancelling", "action.ended", "action.planned", "action.refused", "action.released", "action.requested",
			"action.retried", "action.stalled", "action.warned", "step.failed", "step.started",
		}}},
	} {
		op := &fakeOperator{}
		d := newDesk(t, op)
		if code := d.types(append([]string{"history"}, test.args...)...); code != exitDone {
			t.Errorf("%v: exit code %d: %s", test.args, code, d.errOut)
			continue
		}
		if slices.Contains(test.args, "*ed") {
			test.want.Types = slices.DeleteFunc(test.want.Types, func(t journal.Type) bool { return !strings.HasSuffix(string(t), "ed") })
		}
		got := op.queries[len(op.queries)-1]
		if !got.Since.Equal(test.want.Since) || !got.Until.Equal(test.want.Until) {
			t.Errorf("%v: from %s until %s, want %s until %s", test.args, got.Since, got.Until, test.want.Since, test.want.Until)
		}
		got.Since, got.Until, test.want.Since, test.want.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
}

func past(t *testing.T, n int) []journal.Event {
	t.Helper()
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = event(t, uint64(i+1), "", journal.TypeNodeGone, journal.NodeGone{Reason: "no " + strconv.Itoa(i+1)})
	}
	return events
}

func TestHistoryShowsTheNewestLast(t *testing.T) {
	d := newDesk(t, &fakeOperator{past: past(t, 5)})
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"no 1", "no 2", "no 3", "no 4", "no 5"}},
		{[]string{"--limit", "2"}, []string{"no 4", "no 5"}},
		{[]string{"--limit", "2", "--reverse"}, []string{"no 5", "no 4"}},
	} {
		d.expect(d.types(append([]string{"history"}, test.args...)...), exitDone, "SEQ", "")
		var got []string
		for line := range strings.Lines(d.out.String()) {
			if _, reason, found := strings.Cut(strings.TrimSpace(line), "gone: "); found {
				got = append(got, reason)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
}

func TestHistorySaysWhenTheDefaultWindowHidesSomething(t *testing.T) {
	old := event(t, 1, "", journal.TypeNodeGone, journal.NodeGone{Reason: "long ago"})
	old.Time = noon.Add(-48 * time.Hour)
	d := newDesk(t, &fakeOperator{past: []journal.Event{old}})
	d.expect(d.types("history"), exitDone, "", "--since all")
	if strings.Contains(d.out.String(), "long ago") {
		t.Error("an event outside of the window is shown")
	}
	d.expect(d.types("history", "--since", "all"), exitDone, "long ago", "")
	if d.errOut.Len() != 0 {
		t.Errorf("said %q", d.errOut)
	}
}

func TestHistoryFollows(t *testing.T) {
	op := &fakeOperator{past: past(t, 3), followed: make(chan struct{})}
	op.live = []journal.Event{event(t, 4, "", journal.TypeNodeGone, journal.NodeGone{Reason: "just now"})}
	d := newDesk(t, op)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-op.followed; cancel() }()
	d.expect(d.typesUntil(ctx, "history", "--follow", "--limit", "1"), exitDone, "just now", "")
	if got := strings.Count(d.out.String(), "no "); got != 1 {
		t.Errorf("shows %d old events, want 1:\n%s", got, d.out)
	}
}

func TestHistoryIsFollowedAcrossARestartOfTheOperator(t *testing.T) {
	events := past(t, 4)
	before := &fakeOperator{past: events[:2], live: events[2:3], lost: true}
	after := &fakeOperator{past: events[:3], live: events, followed: make(chan struct{})}
	d := newDesk(t, nil)
	operators := []*fakeOperator{before, after}
	d.app.dial = func(context.Context, string) (operator, error) {
		next := operators[0]
		operators = operators[1:]
		return next, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-after.followed; cancel() }()
	d.expect(d.typesUntil(ctx, "history", "--follow", "--since", "all"), exitDone, "no 4", "lost the operator")
	for _, event := range events {
		if n := strings.Count(d.out.String(), "is gone: no "+strconv.FormatUint(event.Seq, 10)); n != 1 {
			t.Errorf("event %d was shown %d times", event.Seq, n)
		}
	}
}

func TestHistoryOfWhatTheJournalDoesNotKnowSaysSo(t *testing.T) {
	op := &fakeOperator{
		past:   []journal.Event{event(t, 1, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone})},
		status: api.Status{Nodes: []api.NodeStatus{{Name: "worker-2"}, {Name: "worker-2"}}},
	}
	d := newDesk(t, op)
	d.expect(d.types("history", "--node", "worker-3"), exitDone, "", "nothing about node worker-3; did you mean worker-2?\n")
	d.expect(d.types("history", "--action", "purge-worker-2-8"), exitDone, "", "nothing about action purge-worker-2-8; did you mean "+purgeID+"?\n")
	for _, args := range [][]string{{"--node", "worker-2"}, {"--action", purgeID}} {
		d.expect(d.types(append([]string{"history"}, args...)...), exitDone, "ended, done", "")
		if d.errOut.Len() != 0 {
			t.Errorf("%v: said %q", args, d.errOut)
		}
	}
}

func TestTheTreeNamesTheCause(t *testing.T) {
	requested := event(t, 2, "clear-w-1", journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionClearNode})
	requested.Cause = 1
	d := newDesk(t, &fakeOperator{past: []journal.Event{past(t, 1)[0], requested}})
	d.expect(d.types("history", "--action", "clear-w-1", "-o", "tree"), exitDone, "because of #1: node worker-2 is gone: no 1", "")
}

func TestAReaderThatLeavesIsNoFailure(t *testing.T) {
	d := newDesk(t, &fakeOperator{past: past(t, 5)})
	d.app.stdout = writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
	if code := d.types("history"); code != exitDone || d.errOut.Len() != 0 {
		t.Errorf("exit code %d, said %q", code, d.errOut)
	}
}

func TestColoursNeedATerminalAndItsOwnersConsent(t *testing.T) {
	for _, test := range []struct {
		terminal       bool
		noColor, terms string
		want           bool
	}{{true, "", "xterm", true}, {false, "", "xterm", false}, {true, "1", "xterm", false}, {true, "", "dumb", false}} {
		d := newDesk(t, &fakeOperator{past: past(t, 1)})
		d.app.stdoutTerminal = test.terminal
		d.app.env = func(name string) (string, bool) {
			text, ok := map[string]string{"NO_COLOR": test.noColor, "TERM": test.terms}[name]
			return text, ok
		}
		d.types("history", "-o", "tree", "--since", "all", "--type", "node.gone")
		d.types("status")
		status := &fakeOperator{status: api.Status{Operator: api.OperatorStatus{Running: true}}}
		d.app.dial = func(context.Context, string) (operator, error) { return status, nil }
		d.types("status")
		if got := strings.Contains(d.out.String(), "\x1b["); got != test.want {
			t.Errorf("%+v: colours: %v", test, got)
		}
	}
}

func TestStatusSucceedsWhateverTheStatusIs(t *testing.T) {
	op := &fakeOperator{status: api.Status{Now: noon, Journal: api.JournalStatus{SafeMode: &journal.JournalSalvaged{Problem: "page 7"}}}}
	d := newDesk(t, op)
	d.expect(d.types("status"), exitDone, "SAFE MODE", "")
	d.expect(d.types("status", "-o", "json"), exitDone, "", "")
	var got api.Status
	if err := json.Unmarshal(d.out.Bytes(), &got); err != nil || got.Journal.SafeMode == nil {
		t.Errorf("got %s (%v)", d.out, err)
	}
	d.expect(d.types("status", "-o", "yaml"), exitDone, "safe_mode:", "")
	op.status.Nodes = []api.NodeStatus{{Name: "old", State: fsm.Purged, Since: noon.Add(-25 * time.Hour)}}
	d.expect(d.types("status"), exitDone, "1 node purged or gone", "")
	d.expect(d.types("status", "--all"), exitDone, "old", "")
}

func TestWordsArePassedOn(t *testing.T) {
	for _, test := range []struct {
		args []string
		want any
		out  string
	}{
		{[]string{"pause", "--reason", "r", "--for", "2h"}, api.PauseRequest{Reason: "r", For: 2 * time.Hour}, "paused everything until 2026-11-21T14:00:00Z"},
		{[]string{"pause", "w", "--reason", "r"}, api.PauseRequest{Node: "w", Reason: "r"}, "paused node w until"},
		{[]string{"resume"}, api.ResumeRequest{}, "resumed everything"},
		{[]string{"resume", "w"}, api.ResumeRequest{Node: "w"}, "resumed node w"},
		{[]string{"retry", "a", "--reason", "r"}, []any{"retry", api.ActionCommand{Action: "a", Reason: "r"}}, "a is tried again"},
		{[]string{"cancel", "a"}, []any{"cancel", api.ActionCommand{Action: "a"}}, "a is asked to stop"},
		{[]string{"journal", "accept", "--reason", "r"}, api.AcceptRequest{Reason: "r"}, "accepted"},
		{[]string{"journal", "export", "-", "--node", "w"}, journal.Query{Node: "w"}, "exported"},
	} {
		op := &fakeOperator{}
		d := newDesk(t, op)
		d.expect(d.types(test.args...), exitDone, test.out, "")
		if diff := cmp.Diff([]any{test.want}, op.words); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
		op.err = errors.New("no such thing")
		d.expect(d.types(test.args...), exitFailed, "", "ekco: no such thing")
	}
}

func TestAnExportNeverReplacesAFileAndLeavesNoPart(t *testing.T) {
	op := &fakeOperator{}
	d := newDesk(t, op)
	path := filepath.Join(d.dir, "events.gz")
	d.expect(d.types("journal", "export", path), exitDone, "", "")
	if content, err := os.ReadFile(path); err != nil || string(content) != "exported" {
		t.Errorf("the file holds %q (%v)", content, err)
	}
	d.expect(d.types("journal", "export", path), exitFailed, "", "exists already")
	op.err = errors.New("broken off")
	d.expect(d.types("journal", "export", path+"2"), exitFailed, "", "broken off")
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(left) != 1 {
		t.Errorf("left %v", left)
	}
	d.expect(d.types("journal", "import", path), exitFailed, "", "broken off")
	op.err = nil
	d.expect(d.types("journal", "import", path), exitDone, "imported 2 events, #1 to #2", "")
}

func TestVerifyFailsIfTheJournalIsDamaged(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9}}
	d := newDesk(t, op)
	d.expect(d.types("journal", "verify"), exitDone, "sound: 9 events, #1 to #9", "")
	op.verified = api.VerifyResult{Problem: "hash of #4"}
	d.expect(d.types("journal", "verify"), exitFailed, "damaged: hash of #4", "")
	d.expect(d.types("journal", "verify", "-o", "json"), exitFailed, `"ok": false`, "")
}

func TestTheShellIsOfferedNames(t *testing.T) {
	op := &fakeOperator{past: []journal.Event{
		event(t, 1, "clear-worker-0-1", journal.TypeActionEnded, journal.ActionEnded{}), event(t, 2, "clear-worker-1-1", journal.TypeActionEnded, journal.ActionEnded{}),
	}, status: api.Status{
		Nodes:   []api.NodeStatus{{Name: "worker-0", State: fsm.Purged}, {Name: "worker-0", State: fsm.Gone}, {Name: "worker-1"}, {Name: "worker-2"}},
		Actions: []journal.ActionRecord{{ID: purgeID}},
		Pauses:  map[string]fsm.PauseState{"": {}, "worker-2": {}},
	}}
	d := newDesk(t, op)
	for _, test := range []struct{ args, want string }{
		{"purge-node|", "worker-1\nworker-2\n:"},
		{"resume|", "worker-2\n:"},
		{"retry|", purgeID},
		{"cancel|", purgeID},
		{"history|--node|", "worker-0\nworker-1"},
		{"history|--action|", purgeID + "\nclear-worker-1-1\nclear-worker-0-1\n:"},
		{"journal|export|--action|", purgeID + "\nclear-worker-1-1\nclear-worker-0-1\n:"},
		{"history|--type|", "step.done"},
		{"history|-o|", "tree"},
		{"history|--component|", "policy"},
		{"status|--log_level|", "debug\ninfo"},
	} {
		d.expect(d.types(append([]string{"__complete"}, strings.Split(test.args, "|")...)...), exitDone, test.want, "")
		if strings.Count(d.out.String(), "worker-0\n") > 1 && !strings.Contains(test.args, "action") {
			t.Errorf("%s: offers a name twice: %s", test.args, d.out)
		}
	}
}

// written makes a journal file and closes it.
func written(t *testing.T, d *desk) string {
	t.Helper()
	path := filepath.Join(d.dir, "journal.db")
	store, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Append(context.Background(),
		journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: "operator", Payload: journal.OperatorStarted{Version: "v0.29.0", Host: "h", PID: 1}},
		journal.Draft{Type: journal.TypeNodeObserved, Subject: journal.NodeSubject("worker-2", "u2"), Actor: "observer/node", Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker}}},
	)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithoutAnOperatorTheFileIsRead(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.expect(d.types("status"), exitDone, "worker-2", "")
	d.expect(d.types("status"), exitDone, "not running", "")
	d.app.now = time.Now
	d.expect(d.types("history"), exitDone, "node worker-2 (worker) is ready", "")
	d.expect(d.types("pause", "--reason", "maintenance"), exitDone, "no operator runs", "")
	d.expect(d.types("status"), exitDone, "maintenance", "")
	d.expect(d.types("history", "--type", "pause.set", "-o", "wide"), exitDone, api.LocalActor(), "")
	d.expect(d.types("resume"), exitDone, "resumed", "")
	d.expect(d.types("resume"), exitFailed, "", "not paused")
	d.expect(d.types("journal", "verify"), exitDone, "sound: 5 events", "")
	d.expect(d.types("journal", "stat"), exitDone, "#1 to #5", "")
	d.expect(d.types("journal", "accept"), exitFailed, "", "safe mode")
	export := filepath.Join(d.dir, "export.gz")
	d.expect(d.types("journal", "export", export), exitDone, "", "")
	expectExport(t, export, 5)
	d.expect(d.types("journal", "import", export), exitDone, "nothing imported", "")
	d.expect(d.types("history", "--follow"), exitFailed, "", "nothing to follow")
}

// expectExport checks that a file holds gzip'ed records of an unbroken chain.
func expectExport(t *testing.T, path string, want int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var previous journal.Hash
	n := 0
	for lines := bufio.NewScanner(unpacked); lines.Scan(); n++ {
		if previous, err = journal.CheckRecord(previous, lines.Bytes()); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
	}
	if n != want {
		t.Errorf("the export has %d records, want %d", n, want)
	}
}

func TestAMistypedJournalIsNotCreated(t *testing.T) {
	d := newDesk(t, nil)
	for _, args := range [][]string{{"status"}, {"history"}, {"pause", "--reason", "r"}, {"journal", "verify"}} {
		d.expect(d.types(append(args, "--journal", filepath.Join(d.dir, "none.db"))...), exitFailed, "", "there is no journal at")
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(left) != 0 {
		t.Errorf("made %v", left)
	}
}

func TestAHolderThatDoesNotListenIsNamed(t *testing.T) {
	d := newDesk(t, nil)
	store, err := bolt.Open(written(t, d), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, args := range [][]string{{"status"}, {"history"}, {"resume"}, {"journal", "verify"}} {
		d.expect(d.types(args...), exitFailed, "", "pid "+strconv.Itoa(os.Getpid()))
	}
	d.app.dial = func(context.Context, string) (operator, error) { return nil, api.ErrNoAnswer }
	d.expect(d.types("status"), exitFailed, "", "pid "+strconv.Itoa(os.Getpid()))
}

func TestADamagedFileIsReportedByVerify(t *testing.T) {
	d := newDesk(t, nil)
	path := written(t, d)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(content), "worker-2")
	content[at] ^= 0xff
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("journal", "verify"), exitFailed, "damaged", "")
}
