package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
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
	d.expect(d.types("--version"), exitDone, "EKCO v", "")
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
		{"history", "--since", "tomorrow"},
		{"history", "--type", "moon.*"},
		{"history", "--component", "moon"},
		{"history", "--component", "node,moon"},
		{"history", "--component", "operator", "--type", "step.*"},
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
	d.expect(d.types("purge-node", "worker-2", "--no_wait", "--min-ready-master-nodes=1"), exitDone, "the operator does the work", "")
	if got := string(op.request(t).Input); got != `{"min_ready_primaries":1,"unasked":true}` {
		t.Errorf("--min-ready-master-nodes was passed on as %s", got)
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
	want := []string{"cancel", "certificates", "change-load-balancer", "completion", "explain", "generate-haproxy-config", "generate-haproxy-manifest", "help", "history", "journal", "node-report", "operator", "pause", "purge-node", "regen-cert", "report", "resume", "retry", "rotate-certs", "rotate-kotsadm-certs", "set-kubeconfig-server", "status", "version"}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	for _, cmd := range newRootCommand(newApp()).Commands() {
		if !cmd.Hidden && cmd.Example == "" && cmd.Name() != "completion" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
}

func TestAReaderThatLeavesIsNoFailure(t *testing.T) {
	d := newDesk(t, &fakeOperator{past: past(t, 5)})
	broken := writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
	d.app.stdout = &guardedOutput{broken, unreadTimeout, d.app.unread}
	if code := d.types("history"); code != exitDone || d.errOut.Len() != 0 {
		t.Errorf("exit code %d, said %q", code, d.errOut)
	}
}

// TestAnOperatorThatLeavesIsAFailure: what is written to one that ends meets a broken pipe as
// well, and nothing is purged by that.
func TestAnOperatorThatLeavesIsAFailure(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.err = fmt.Errorf("call the operator on /var/lib/ekco/ekco.sock: %w", syscall.EPIPE)
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "broken pipe")
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
		d.app.dial = func(context.Context, string, string) (operator, error) { return status, nil }
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
	op.status.Nodes = []api.NodeStatus{{Name: "old", State: fsmnode.Purged, Since: noon.Add(-25 * time.Hour)}}
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
		{[]string{"pause", "w", "--reason", "r"}, api.PauseRequest{Name: "w", Reason: "r"}, "paused w until"},
		{[]string{"resume"}, api.ResumeRequest{}, "resumed everything"},
		{[]string{"resume", "w"}, api.ResumeRequest{Name: "w"}, "resumed w"},
		{[]string{"retry", "a", "--reason", "r"}, api.RetryRequest{Action: "a", Reason: "r"}, "a (light hall) is retried"},
		{[]string{"retry", "a", "--force"}, api.RetryRequest{Action: "a", Force: true}, "a (light hall) is retried, overriding the holds whose reasons name --force"},
		{[]string{"retry", "a", "--force", "--list", "1a"}, api.RetryRequest{Action: "a", Force: true, List: "1a"}, "a (light hall) is retried, overriding the holds whose reasons name --force"},
		{[]string{"cancel", "a"}, api.CancelRequest{Action: "a"}, "a (light hall) is asked to stop; it has changed nothing"},
		{[]string{"journal", "accept", "--reason", "r"}, api.AcceptRequest{Reason: "r"}, "accepted"},
		{[]string{"journal", "export", "-", "--node", "w"}, journal.Query{Node: "w"}, ""},
	} {
		op := &fakeOperator{status: api.Status{Actions: []journal.ActionRecord{{ID: "a", Kind: "light", Subject: journal.Subject{Kind: "Lamp", Name: "hall"}}}}}
		d := newDesk(t, op)
		d.expect(d.types(test.args...), exitDone, test.out, "")
		if diff := cmp.Diff([]any{test.want}, op.words); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
		op.err = errors.New("no such thing")
		d.expect(d.types(test.args...), exitFailed, "", "ekco: no such thing")
	}
}

func TestANameThatSeveralThingsHaveIsAWrongCommandLine(t *testing.T) {
	op := &fakeOperator{err: fmt.Errorf("pause minio: %w; say which", fsm.ErrAmbiguous)}
	d := newDesk(t, op)
	d.expect(d.types("pause", "minio", "--reason", "r"), exitUsage, "", "say which")
	op.err = fmt.Errorf("pause minio: say which%w", api.ErrInvalid) // as the socket has it
	d.expect(d.types("pause", "minio", "--reason", "r"), exitUsage, "", "say which")
}

func TestTheShellIsOfferedNames(t *testing.T) {
	op := &fakeOperator{past: []journal.Event{
		event(t, 1, "clear-worker-0-1", journal.TypeActionEnded, journal.ActionEnded{}), event(t, 2, "clear-worker-1-1", journal.TypeActionEnded, journal.ActionEnded{}),
	}, status: api.Status{
		Nodes:   []api.NodeStatus{{Name: "worker-0", State: fsmnode.Purged}, {Name: "worker-0", State: fsmnode.Gone}, {Name: "worker-1"}, {Name: "worker-2"}},
		Things:  []api.ThingStatus{{Machine: "lamp", Name: "hall", Gone: true}, {Machine: "lamp", Name: "hall"}},
		Actions: []journal.ActionRecord{{ID: purgeID}},
		Pauses:  map[string]fsm.PauseState{"": {}, "worker-1": {}, "lamp/worker-1": {}, "lamp/hall": {}, "worker-2": {}},
	}}
	d := newDesk(t, op)
	for _, test := range []struct{ args, want string }{
		{"purge-node|", "worker-1\nworker-2\n:"},
		{"resume|", "hall\nlamp/worker-1\nnode/worker-1\nworker-2\n:"},
		{"retry|", purgeID},
		{"cancel|", purgeID},
		{"history|--node|", "worker-0\nworker-1"},
		{"history|", "lamp/hall\nnode/worker-0\nnode/worker-1\nnode/worker-2\n:"},
		{"explain|", "lamp/hall\nnode/worker-0\nnode/worker-1\nnode/worker-2\n" + purgeID + "\n:"},
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
	store, err := bolt.Open(t.Context(), path, bolt.Options{})
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
	d.expect(d.types("status", "-o", "wide"), exitDone, "worker-2", "")
	d.expect(d.types("status"), exitDone, "not running", "")
	d.app.now = time.Now
	d.expect(d.types("history"), exitDone, "node worker-2 (worker) is ready", "")
	d.expect(d.types("pause", "--reason", "maintenance"), exitDone, "no operator runs", "")
	d.expect(d.types("status"), exitDone, "maintenance", "")
	d.expect(d.types("history", "--type", "pause.set", "-o", "wide"), exitDone, api.LocalActor(), "")
	d.expect(d.types("resume"), exitDone, "resumed", "")
	d.expect(d.types("resume"), exitFailed, "", "not paused")
	d.expect(d.types("journal", "verify"), exitDone, "intact: 5 events", "")
	d.expect(d.types("journal", "stat"), exitDone, "#1 to #5", "")
	d.expect(d.types("journal", "accept"), exitFailed, "", "safe mode")
	export := filepath.Join(d.dir, "export.gz")
	d.expect(d.types("journal", "export", export), exitDone, "", "")
	expectExport(t, export, 5)
	d.expect(d.types("journal", "import", export), exitDone, "nothing imported", "")
	d.expect(d.types("history", "--follow"), exitFailed, "", "cannot follow events")
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
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		store, err := bolt.Open(t.Context(), written(t, d), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, args := range [][]string{{"status"}, {"history"}, {"resume"}, {"journal", "verify"}} {
			d.expect(d.types(args...), exitFailed, "", "in use by pid "+strconv.Itoa(os.Getpid()))
			d.expect(exitFailed, exitFailed, "", "which does not listen on the socket next to it")
		}
		d.expect(d.types("operator"), exitFailed, "", "stop the other one first")
	})
}

func TestForAnOperatorThatHangsTheAdviceIsToRestartItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		store, err := bolt.Open(t.Context(), written(t, d), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		d.app.dial = func(context.Context, string, string) (operator, error) { return nil, api.ErrNoAnswer }
		for _, args := range [][]string{{"status"}, {"history"}, {"resume"}, {"purge-node", "worker-2"}, {"journal", "verify"}} {
			d.expect(d.types(args...), exitFailed, "", "in use by pid "+strconv.Itoa(os.Getpid()))
			d.expect(exitFailed, exitFailed, "", "restart its pod (kubectl -n kurl rollout restart deploy/ekc-operator)")
			if strings.Contains(d.errOut.String(), "ask the running EKCO") {
				t.Errorf("%v: sends people to one who does not answer: %s", args, d.errOut)
			}
		}
	})
}

func TestTheHelpNamesEveryExitCode(t *testing.T) {
	d := newDesk(t, nil)
	d.expect(d.types("--help"), exitDone, "Exit codes: 0 done; 1 failed", "")
	help := strings.Join(strings.Fields(d.out.String()), " ")
	for _, want := range []string{"2 the command line", "3, of \"journal verify\" alone"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q:\n%s", want, d.out)
		}
	}
}
