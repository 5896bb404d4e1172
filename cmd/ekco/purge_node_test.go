package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

const purgeID = "purge-worker-2-7"

// purging returns an operator that carries out a purge that ends so.
func purging(t *testing.T, outcome journal.Outcome) *fakeOperator {
	t.Helper()
	reason := "so it was"
	if outcome == journal.OutcomeDone {
		reason = ""
	}
	return &fakeOperator{
		explained: api.Explanation{
			Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("worker-2", "u2"),
			Plan:   journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-node"}}, Facts: []byte(`{"node_uid":"u2"}`)},
			Checks: []api.CheckResult{{Preflight: "ReadyMinimums", Verdict: actions.VerdictPass}},
		},
		admitted: api.Admission{Action: purgeID, FromSeq: 6},
		status:   api.Status{Operator: api.OperatorStatus{Running: true}},
		live: []journal.Event{
			event(t, 7, purgeID, journal.TypeActionRequested, journal.ActionRequested{Kind: journal.ActionPurgeNode}),
			event(t, 8, "another", journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}),
			event(t, 9, purgeID, journal.TypeActionHeld, journal.ActionHeld{Preflight: "OneAtATime", Reason: "another runs"}),
			event(t, 10, purgeID, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 1}),
			event(t, 11, purgeID, journal.TypeActionStalled, journal.ActionStalled{Step: "delete-node", Reason: "5 attempts"}),
			event(t, 12, purgeID, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 1}),
			event(t, 13, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: outcome, Reason: reason}),
		},
	}
}

func TestAPurgeThatLeftSomethingAloneSaysWhatAndSucceeds(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	ended := journal.ActionEnded{Outcome: journal.OutcomeDone, Reason: "the etcd member is another node's"}
	op.live[len(op.live)-1] = event(t, 13, purgeID, journal.TypeActionEnded, ended)
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "warning: left unchanged: "+ended.Reason)
}

func TestPurgeNodeShowsEachStepAndSucceedsOnlyWhenDone(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeCancelled, journal.OutcomeAbandoned, journal.OutcomeDryRun, journal.OutcomeSuperseded} {
		t.Run(string(outcome), func(t *testing.T) {
			op := purging(t, outcome)
			op.status.Actions = []journal.ActionRecord{{ID: purgeID}}
			d := newDesk(t, op)
			code := d.types("purge-node", "worker-2")
			wantCode, wantErr := exitFailed, purgeID+" ended "+string(outcome)+": so it was"
			if outcome == journal.OutcomeDone {
				wantCode, wantErr = exitDone, ""
			}
			d.expect(code, wantCode, "delete-node begins", wantErr)
			for _, want := range []string{
				"delete-node is done", "waits: another runs", "ekco cancel " + purgeID,
				"stalled at delete-node", "ekco retry " + purgeID,
			} {
				if !strings.Contains(d.out.String(), want) {
					t.Errorf("standard output has no %q:\n%s", want, d.out)
				}
			}
			if strings.Contains(d.out.String(), "another: ended") {
				t.Errorf("shows another action's events:\n%s", d.out)
			}
		})
	}
}

func TestPurgeNodePassesOnWhatWasAskedFor(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2", "--force", "--reason", "broken", "--rook_version=1.4.3", "--maintain_rook_storage_nodes",
		"--min_ready_master_nodes=1", "--min_ready_worker_nodes", "0", "--certificates_dir=/pki"), exitDone, "", "")
	least, none, three, yes := 1, 0, 3, true
	want := []fsm.Request{fsmnode.Request{
		Kind: journal.ActionPurgeNode, Node: "worker-2", UID: "u2", Reason: "broken", Force: true, Actor: api.LocalActor(),
		Input: fsmnode.Input{MinReadyPrimaries: &least, MinReadyWorkers: &none, MaintainRook: &yes, Unasked: true},
	}.Asked()}
	if diff := cmp.Diff(want, op.requests); diff != "" {
		t.Error(diff)
	}
	if d.errOut.Len() != 0 {
		t.Errorf("said %q", d.errOut)
	}

	op.requests = nil
	d.env["MIN_READY_WORKER_NODES"] = "3"
	d.expect(d.types("purge-node", "worker-2"), exitDone, "", "")
	want = []fsm.Request{fsmnode.Request{
		Kind: journal.ActionPurgeNode, Node: "worker-2", UID: "u2", Actor: api.LocalActor(), Input: fsmnode.Input{MinReadyWorkers: &three, Unasked: true},
	}.Asked()}
	if diff := cmp.Diff(want, op.requests); diff != "" {
		t.Error(diff)
	}
}

func TestPurgeNodeWarnsOnceOfAllUnknownKeys(t *testing.T) {
	d := newDesk(t, purging(t, journal.OutcomeDone))
	file := filepath.Join(d.dir, "config.yaml")
	if err := os.WriteFile(file, []byte("zeta: 1\nalpha: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("purge-node", "worker-2", "--config", file), exitDone, "is purged", `"keys":["alpha","zeta"]`)
	if lines := strings.Count(d.errOut.String(), "\n"); lines != 1 {
		t.Errorf("said in %d lines:\n%s", lines, d.errOut)
	}
}

func TestPurgeNodeAsksOnATerminal(t *testing.T) {
	for _, test := range []struct {
		name           string
		warns, askable bool
		typed          string
		args           []string
		answer         string
		code           int
	}{
		{"no warning on a terminal, yes", false, true, "y\n", nil, "", exitDone},
		{"no warning on a terminal, no", false, true, "n\n", nil, "", exitFailed},
		{"no warning without a terminal", false, false, "", nil, "", exitDone},
		{"no warning and --yes", false, true, "", []string{"--yes"}, "", exitDone},
		{"warning on a terminal, yes", true, true, "Yes\n", nil, "yes", exitDone},
		{"warning on a terminal, no", true, true, "n\n", nil, "", exitFailed},
		{"warning on a terminal, closed", true, true, "", nil, "", exitFailed},
		{"warning without a terminal", true, false, "", nil, "no terminal", exitDone},
		{"warning and --yes", true, true, "", []string{"--yes"}, "--yes", exitDone},
		{"warning and --force", true, true, "", []string{"--force"}, "--force", exitDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := purging(t, journal.OutcomeDone)
			if test.warns {
				op.explained.Checks = append(op.explained.Checks, api.CheckResult{Preflight: "StormBrake", Verdict: actions.VerdictWarn, Reason: "4 of 6"})
			}
			d := newDesk(t, op)
			d.app.askable, d.app.stdin = test.askable, strings.NewReader(test.typed)
			code := d.types(append([]string{"purge-node", "worker-2"}, test.args...)...)
			if code != test.code {
				t.Fatalf("exit code %d, want %d: %s", code, test.code, d.errOut)
			}
			if asked := strings.Contains(d.errOut.String(), "[y/N]"); asked != (test.askable && test.args == nil) {
				t.Errorf("asked: %v", asked)
			}
			if test.warns && !strings.Contains(d.errOut.String(), "warning: 4 of 6") {
				t.Errorf("the warning is not on standard error: %s", d.errOut)
			}
			if code != exitDone {
				if len(op.requests) != 0 {
					t.Error("a purge was requested although the answer was no")
				}
				return
			}
			var want []journal.ActionWarned
			if test.warns {
				want = []journal.ActionWarned{{Preflight: "StormBrake", Warning: "4 of 6", Answer: test.answer}}
			}
			if diff := cmp.Diff(want, op.request(t).Warned); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOpenPurgeWithoutWarningsIsFollowedWithoutAQuestion(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained.Resumes = purgeID
	d := newDesk(t, op)
	d.app.askable = true
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "")
	if strings.Contains(d.errOut.String(), "[y/N]") {
		t.Errorf("it asks: %s", d.errOut)
	}
}

// blank is a terminal at which nobody types.
func blank(t *testing.T) io.Reader {
	t.Helper()
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	return in
}

func TestASignalAtTheQuestionIsAnAnswer(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained.Checks = []api.CheckResult{{Preflight: "StormBrake", Verdict: actions.VerdictWarn, Reason: "4 of 6"}}
	d := newDesk(t, op)
	d.app.askable, d.app.stdin = true, blank(t)
	ctx, cancel := context.WithCancel(context.Background())
	d.app.stderr = writerFunc(func(content []byte) (int, error) {
		if strings.Contains(string(content), "[y/N]") {
			cancel()
		}
		return d.errOut.Write(content)
	})
	d.expect(d.typesUntil(ctx, "purge-node", "worker-2"), exitFailed, "", "interrupted; nothing was changed")
	if len(op.requests) != 0 {
		t.Errorf("requested %v", op.requests)
	}
}

func TestNothingIsWrittenIntoAQuestion(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained.Checks = []api.CheckResult{{Preflight: "StormBrake", Verdict: actions.VerdictWarn, Reason: "4 of 6"}}
	d := newDesk(t, nil)
	var log *slog.Logger
	d.app.work = func(_ context.Context, _ config.Config, _ ringOptions, l *slog.Logger) (api.Backend, <-chan struct{}, func() error, error) {
		log = l
		return op, make(chan struct{}), func() error { return nil }, nil
	}
	keys, typing := io.Pipe()
	d.app.askable, d.app.stdin = true, keys
	asked := make(chan struct{})
	d.app.stderr = writerFunc(func(content []byte) (int, error) {
		if strings.Contains(string(content), "[y/N]") {
			close(asked)
		}
		return d.errOut.Write(content)
	})
	go func() {
		<-asked
		log.Warn("the API is slow")
		_, _ = typing.Write([]byte("n\n"))
	}()
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "the API is slow")
	_, after, _ := strings.Cut(d.errOut.String(), "[y/N] ")
	if len(op.requests) != 0 || !strings.HasPrefix(after, "{") || strings.Index(after, "the API is slow") > strings.Index(after, "nothing was changed") {
		t.Errorf("requested %v, said %s", op.requests, d.errOut)
	}
}

func TestARefusalIsRecordedUnlessItIsADryRun(t *testing.T) {
	for _, test := range []struct {
		args []string
		want int
	}{{[]string{"purge-node", "worker-2"}, 1}, {[]string{"purge-node", "worker-2", "--dry-run"}, 0}} {
		op := &fakeOperator{err: &fsm.RefusedError{Rule: "ReadyMinimums", Reason: "2 of 2"}}
		d := newDesk(t, op)
		d.expect(d.types(test.args...), exitFailed, "", "refused by ReadyMinimums: 2 of 2")
		if len(op.requests) != test.want {
			t.Fatalf("%v: %d requests, want %d", test.args, len(op.requests), test.want)
		}
		if test.want == 1 && !op.requests[0].Refused {
			t.Errorf("the request could be admitted: %+v", op.requests[0])
		}
	}
}

func TestADryRunShowsThePlanAndRequestsNothing(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2", "--dry-run"), exitDone, "node_uid: u2", "")
	d.expect(d.types("purge-node", "worker-2", "--dry-run", "-o", "json"), exitDone, "", "")
	var got api.Explanation
	if err := json.Unmarshal(d.out.Bytes(), &got); err != nil || len(got.Plan.Steps) == 0 || got.Plan.Steps[0].ID != "delete-node" {
		t.Errorf("got %s (%v)", d.out, err)
	}
	if len(op.requests) != 0 {
		t.Errorf("requested %v", op.requests)
	}
}

func TestPurgeNodeSaysThatItResumes(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.admitted.Resumed, op.admitted.Message = true, "requested at noon by me"
	op.status.Actions = []journal.ActionRecord{{ID: purgeID, Holds: map[string]journal.ActionHeld{"": {Preflight: "Quorum", Reason: "2 of 3"}}}}
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "resuming "+purgeID+", requested at noon by me", "")
	if !strings.Contains(d.out.String(), "2 of 3") {
		t.Errorf("does not say why it waits:\n%s", d.out)
	}
}

// TestWhoJoinsAPurgeIsToldWhatThatOneWaitsFor: and not what others do.
func TestWhoJoinsAPurgeIsToldWhatThatOneWaitsFor(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.admitted.Resumed = true
	for id, reason := range map[string]string{purgeID: "own reason", "purge-worker-1-3": "another reason"} {
		hold := journal.ActionHeld{Step: "delete-node", Preflight: "OneAtATime", Reason: reason}
		op.status.Actions = append(op.status.Actions, journal.ActionRecord{
			ID: id, Kind: journal.ActionPurgeNode, Planned: true, Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-node"}}},
			Holds: map[string]journal.ActionHeld{hold.Step: hold},
		})
	}
	d := newDesk(t, op)
	d.app.deferredAfter = time.Minute
	d.expect(d.types("purge-node", "worker-2"), exitDone, "own reason", "")
	if strings.Contains(d.out.String()+d.errOut.String(), "another reason") {
		t.Errorf("it says\n%s%s", d.out, d.errOut)
	}
}

func TestPurgeNodeOfAPurgedNodeIsDoneAlready(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.explained = api.Explanation{AlreadyDone: true, Message: "node worker-2 is purged already"}
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "purged already", "")
}

func TestARefusalAndAnUnknownNodeFail(t *testing.T) {
	for _, err := range []error{
		&fsm.RefusedError{Rule: "ReadyMinimums", Reason: "2 of 2"},
		&fsmnode.UnknownNodeError{Name: "worker-22", Near: []string{"worker-2"}},
	} {
		d := newDesk(t, &fakeOperator{err: err})
		d.expect(d.types("purge-node", "worker-22"), exitFailed, "", err.Error())
	}
}

func TestNoWaitReturnsAtOnceAndNeedsAnOperator(t *testing.T) {
	d := newDesk(t, purging(t, journal.OutcomeCancelled))
	d.expect(d.types("purge-node", "worker-2", "--no-wait"), exitDone, "ekco history --action "+purgeID+" --follow", "")
	d = newDesk(t, nil)
	d.expect(d.types("purge-node", "worker-2", "--no-wait"), exitUsage, "", "needs a running operator")
}

func TestAnInterruptedPurgeGoesOnWithoutThisCommand(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.live, op.followed = op.live[:4], make(chan struct{})
	d := newDesk(t, op)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-op.followed; cancel() }()
	d.expect(d.typesUntil(ctx, "purge-node", "worker-2"), exitFailed, "delete-node begins", "the operator continues "+purgeID)
}

func TestAPurgeIsFollowedAcrossARestartOfTheOperator(t *testing.T) {
	before, after := purging(t, journal.OutcomeDone), purging(t, journal.OutcomeDone)
	before.live, before.lost = before.live[:4], true
	d := newDesk(t, nil)
	operators := []*fakeOperator{before, after}
	d.app.dial = func(context.Context, string, string) (operator, error) {
		next := operators[0]
		operators = operators[1:]
		return next, nil
	}
	d.expect(d.types("purge-node", "worker-2"), exitDone, "delete-node is done", "lost the connection to the operator")
	if n := strings.Count(d.out.String(), "delete-node begins"); n != 1 {
		t.Errorf("a step was shown %d times, want once", n)
	}
}

func TestWithoutAnOperatorPurgeNodeDoesTheWorkItself(t *testing.T) {
	d := newDesk(t, nil)
	op, stopped := purging(t, journal.OutcomeDone), false
	var options ringOptions
	d.app.work = func(_ context.Context, _ config.Config, o ringOptions, _ *slog.Logger) (api.Backend, <-chan struct{}, func() error, error) {
		options = o
		return op, make(chan struct{}), func() error { stopped = true; return nil }, nil
	}
	d.expect(d.types("purge-node", "worker-2"), exitDone, "does the work itself", "")
	if want := (ringOptions{OneShot: true, Node: "worker-2"}); options != want || !stopped {
		t.Errorf("ring of %+v, stopped %v", options, stopped)
	}
	op.requests = nil
	d.expect(d.types("purge-node", "worker-2", "--dry-run", "-o", "json"), exitDone, "", "No operator runs")
	if want := (ringOptions{OneShot: true, Node: "worker-2", DryRun: true}); options != want {
		t.Errorf("the ring of a dry run is of %+v, and may change something", options)
	}
	if !json.Valid(d.out.Bytes()) || len(op.requests) != 0 {
		t.Errorf("requested %v, wrote %s", op.requests, d.out)
	}
}

func TestWhenItsOwnRingEndsThePurgeIsNotFinished(t *testing.T) {
	d := newDesk(t, nil)
	op := purging(t, journal.OutcomeDone)
	op.live = op.live[:4]
	ended := make(chan struct{})
	op.followed = ended
	d.app.work = func(context.Context, config.Config, ringOptions, *slog.Logger) (api.Backend, <-chan struct{}, func() error, error) {
		return op, ended, func() error { return errors.New("the journal belongs to another cluster") }, nil
	}
	dials := 0
	d.app.dial = func(context.Context, string, string) (operator, error) { dials++; return nil, api.ErrNoOperator }
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "the journal belongs to another cluster")
	if dials != 1 {
		t.Errorf("it looked for an operator %d times, though it does the work itself", dials)
	}
}

func TestOnATerminalSomethingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := purging(t, journal.OutcomeDone)
		op.live, op.followed = op.live[:4], make(chan struct{})
		d := newDesk(t, op)
		d.app.stderrTerminal = true
		signs := make(chan struct{})
		d.app.stderr = writerFunc(func(content []byte) (int, error) {
			if strings.Contains(string(content), "… delete-node") {
				close(signs)
			}
			return len(content), nil
		})
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-signs; cancel() }()
		if code := d.typesUntil(ctx, "purge-node", "worker-2"); code != exitFailed {
			t.Errorf("exit code %d", code)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(content []byte) (int, error) { return f(content) }

func TestAPersonIsToldWhatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fakeOperator{slow: true})
		ctx, cancel := context.WithCancel(context.Background())
		var said strings.Builder
		d.app.stderr = writerFunc(func(content []byte) (int, error) {
			said.Write(content)
			cancel()
			return len(content), nil
		})
		code := d.typesUntil(ctx, "purge-node", "worker-2")
		if code != exitFailed || !strings.Contains(said.String(), "waiting for the preflights") || !strings.Contains(said.String(), "nothing was changed") {
			t.Errorf("exit code %d, said %q", code, said.String())
		}
	})
}
