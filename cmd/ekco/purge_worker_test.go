package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// beside returns another command that does the work, and ends in the middle.
func beside(t *testing.T) *fakeOperator {
	t.Helper()
	other := purging(t, journal.OutcomeDone)
	other.live, other.lost, other.status.Operator.Running = other.live[:4], true, false
	return other
}

// dials answers the first dials with these, nil being nobody, and later ones
// with nobody.
func (d *desk) dials(answers ...*fakeOperator) {
	d.app.dial = func(context.Context, string, string) (operator, error) {
		if len(answers) == 0 {
			return nil, api.ErrNoOperator
		}
		next := answers[0]
		answers = answers[1:]
		if next == nil {
			return nil, api.ErrNoOperator
		}
		return next, nil
	}
}

// works lets the command do the work itself once tries have failed with err.
func (d *desk) works(op *fakeOperator, tries int, err error) (began *int) {
	began = new(int)
	d.app.work = func(context.Context, config.Config, ringOptions, *slog.Logger) (api.Backend, <-chan struct{}, func() error, error) {
		if tries--; tries >= 0 {
			return nil, nil, nil, err
		}
		*began++
		return op, make(chan struct{}), func() error { return nil }, nil
	}
	return began
}

var errHeld = fmt.Errorf("journal j: %w by pid 7", journal.ErrLocked)

func TestAHolderThatDoesNotListenYetIsWaitedForAndThenFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.app.holderTimeout = time.Minute
		d.dials(nil, nil, purging(t, journal.OutcomeDone))
		began := d.works(nil, 2, errHeld)
		d.expect(d.types("purge-node", "worker-2"), exitDone, "delete-node is done", "waiting for it")
		if *began != 0 {
			t.Error("two did the work")
		}
	})
}

func TestAHolderThatEndsIsWaitedForAndTheWorkDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.app.holderTimeout = time.Minute
		d.works(purging(t, journal.OutcomeDone), 2, errHeld)
		d.expect(d.types("purge-node", "worker-2"), exitDone, "does the work itself", "waiting for it")
	})
}

func TestAHolderThatNeverListensIsNamed(t *testing.T) {
	d := newDesk(t, nil)
	d.works(nil, 1000, errHeld)
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "by pid 7")
}

// endedInFile makes a journal in which the purge ended, or did not yet.
func endedInFile(t *testing.T, d *desk, outcome journal.Outcome) {
	t.Helper()
	store, err := bolt.Open(t.Context(), written(t, d), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	subject := journal.NodeSubject("worker-2", "u2")
	var drafts []journal.Draft
	for range 8 { // behind the events that the other command sent
		drafts = append(drafts, journal.Draft{Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "cli", Payload: journal.PauseSet{}})
	}
	if outcome != "" {
		drafts = append(drafts, journal.Draft{Type: journal.TypeActionEnded, Subject: subject, Action: purgeID, Actor: "operator", Payload: journal.ActionEnded{Outcome: outcome}})
	}
	_, err = store.Append(context.Background(), drafts...)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTheOutcomeOfACommandThatHasEndedIsReadFromTheFile(t *testing.T) {
	for outcome, code := range map[journal.Outcome]int{journal.OutcomeDone: exitDone, journal.OutcomeCancelled: exitFailed} {
		d := newDesk(t, nil)
		endedInFile(t, d, outcome)
		d.dials(beside(t))
		began := d.works(nil, 0, nil)
		got := d.types("purge-node", "worker-2")
		if outcome == journal.OutcomeDone {
			d.expect(got, code, "node worker-2 is purged", "")
		} else {
			d.expect(got, code, "delete-node begins", "not purged: "+purgeID+" ended cancelled")
		}
		if *began != 0 {
			t.Errorf("a purge that ended %s was begun again", outcome)
		}
	}
}

func TestWhatACommandLeftUndoneIsTakenOver(t *testing.T) {
	d := newDesk(t, nil)
	endedInFile(t, d, "")
	d.dials(beside(t))
	rest := purging(t, journal.OutcomeDone)
	rest.admitted.Resumed = true
	began := d.works(rest, 0, nil)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "resuming "+purgeID, errWorkerLeft.Error())
	if *began != 1 || len(rest.requests) != 1 {
		t.Errorf("began %d times, asked for %v", *began, rest.requests)
	}
}

// warning returns what a preflight warns of.
func warning(preflight string) api.CheckResult {
	return api.CheckResult{Preflight: preflight, Verdict: actions.VerdictWarn, Reason: "mind it", Key: "k"}
}

func TestOnlyWhatTheSuccessorOfACommandWarnsOfAnewIsAsked(t *testing.T) {
	d := newDesk(t, nil)
	endedInFile(t, d, "")
	first, rest := beside(t), purging(t, journal.OutcomeDone)
	first.explained.Checks = []api.CheckResult{warning("StormBrake")}
	rest.explained.Checks = []api.CheckResult{warning("StormBrake"), warning("CephHealthy")}
	d.dials(first)
	d.works(rest, 0, nil)
	d.app.askable, d.app.stdin = true, &typing{answers: []string{"y\n", "yes\n"}}
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "warning: mind it (CephHealthy)")
	if asked := strings.Count(d.errOut.String(), "Purge node worker-2 anyway?"); asked != 2 {
		t.Errorf("asked %d times, want once of each command:\n%s", asked, d.errOut)
	}
	want := []journal.ActionWarned{
		{Preflight: "StormBrake", Key: "k", Warning: "mind it", Answer: "yes"}, {Preflight: "CephHealthy", Key: "k", Warning: "mind it", Answer: "yes"},
	}
	if diff := cmp.Diff(want, rest.request(t).Warned); diff != "" {
		t.Error(diff)
	}

	rest.explained.Checks, rest.requests = []api.CheckResult{warning("StormBrake")}, nil
	d.dials(first)
	d.works(rest, 0, nil)
	d.app.stdin = &typing{answers: []string{"y\n"}}
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "")
	if shown := strings.Count(d.errOut.String(), "(StormBrake)"); shown != 2 {
		t.Errorf("shown %d times, want once for each command:\n%s", shown, d.errOut)
	}

	other := warning("StormBrake")
	other.Key = "l"
	rest.explained.Checks, rest.requests = []api.CheckResult{other}, nil
	d.dials(first)
	d.works(rest, 0, nil)
	d.app.stdin = &typing{answers: []string{"y\n", "yes\n"}}
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "")
	if asked := strings.Count(d.errOut.String(), "Purge node worker-2 anyway?"); asked != 2 {
		t.Errorf("asked %d times, though the same preflight warns of something else:\n%s", asked, d.errOut)
	}
}

// typing is a person who answers one question after the other.
type typing struct{ answers []string }

func (p *typing) Read(into []byte) (int, error) {
	if len(p.answers) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.answers[0])
	p.answers = p.answers[1:]
	return n, nil
}

func TestEachRegainedConnectionIsClosedWhenTheNextIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var regained []*fakeOperator
		for range 4 {
			op := purging(t, journal.OutcomeDone)
			op.live, op.lost = op.live[:4], true
			regained = append(regained, op)
		}
		last := purging(t, journal.OutcomeDone)
		d := newDesk(t, nil)
		d.dials(append(regained, last)...)
		open := 0
		dial := d.app.dial
		d.app.dial = func(ctx context.Context, socket, spare string) (operator, error) {
			still := 0
			for i, op := range regained {
				if i > 0 && i < open && op.closed == 0 { // the first is engage's
					still++
				}
			}
			if still > 1 {
				t.Errorf("%d connections that were regained are open when the next one is dialed", still)
			}
			open++
			return dial(ctx, socket, spare)
		}
		d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "an operator answers again")
		for i, op := range append(regained, last) {
			if op.closed != 1 {
				t.Errorf("connection %d was closed %d times", i, op.closed)
			}
		}
	})
}

// TestAnOperatorThatIsAwayForAMomentIsNotReplaced: who reads or takes its journal then is in its
// way when it comes back.
func TestAnOperatorThatIsAwayForAMomentIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		endedInFile(t, d, "")
		before := purging(t, journal.OutcomeDone)
		before.live, before.lost = before.live[:4], true
		d.dials(before, nil, purging(t, journal.OutcomeDone))
		began := d.works(purging(t, journal.OutcomeDone), 0, nil)
		d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", "an operator answers again")
		if *began != 0 {
			t.Error("the work was taken from it")
		}
	})
}

func TestACommandThatEndsWhileItIsAskedIsSucceeded(t *testing.T) {
	d := newDesk(t, nil)
	ending := beside(t)
	ending.askErr = errors.New("EOF")
	d.dials(ending)
	began := d.works(purging(t, journal.OutcomeDone), 0, nil)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "is purged", errWorkerLeft.Error())
	if *began != 1 {
		t.Errorf("began %d times, want once", *began)
	}
}

// TestCommandsThatAllLeaveTheirWorkAreNotTriedForEver: five are.
func TestCommandsThatAllLeaveTheirWorkAreNotTriedForEver(t *testing.T) {
	d := newDesk(t, nil)
	ending := beside(t)
	ending.askErr = errors.New("EOF")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dials := 0
	d.app.dial = func(context.Context, string, string) (operator, error) {
		if dials++; dials > 10 {
			stop()
		}
		return ending, nil
	}
	d.expect(d.typesUntil(ctx, "purge-node", "worker-2"), exitFailed, "", errWorkerLeft.Error())
	if dials != 5 {
		t.Errorf("%d were tried", dials)
	}
}

func TestWhatACommandRefusesIsRefused(t *testing.T) {
	d := newDesk(t, nil)
	busy := beside(t)
	busy.askErr = fmt.Errorf("a command that purges worker-1 holds the journal: %w", api.ErrRefused)
	d.dials(busy)
	began := d.works(nil, 0, nil)
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "purges worker-1")
	if *began != 0 {
		t.Error("it was done all the same")
	}
}

// TestWhoDoesNotAnswerOrMayNotBeAskedIsNotReplaced: somebody else holds the journal.
func TestWhoDoesNotAnswerOrMayNotBeAskedIsNotReplaced(t *testing.T) {
	for _, err := range []error{api.ErrNoAnswer, api.ErrForbidden} {
		d := newDesk(t, nil)
		written(t, d)
		d.app.dial = func(context.Context, string, string) (operator, error) { return nil, err }
		began := d.works(purging(t, journal.OutcomeDone), 0, nil)
		d.expect(d.types("purge-node", "worker-2"), exitFailed, "", err.Error())
		if *began != 0 {
			t.Errorf("%v: the work was begun beside it", err)
		}
	}
}

// A dry run that served others would make a dry run of what they ask for.
func TestADryRunForOneNodeServesNobody(t *testing.T) {
	socket := config.Config{General: config.General{Journal: t.TempDir() + "/" + strconv.Itoa(os.Getpid()) + ".db"}}
	services, err := listen(t.Context(), socket, ringOptions{OneShot: true, Node: "worker-2", DryRun: true}, nil, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil || len(services) != 0 {
		t.Errorf("got %d services and %v", len(services), err)
	}
	if _, err := os.Stat(socket.Socket()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a socket was made: %v", err)
	}
}

// holds keeps the journal for as long as the test runs, as a process that does
// not listen yet.
func (d *desk) holds() {
	d.t.Helper()
	store, err := bolt.Open(d.t.Context(), written(d.t, d), bolt.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := store.Close(); err != nil {
			d.t.Error(err)
		}
	})
}

func TestAQuestionWaitsForAHolderThatDoesNotListenYet(t *testing.T) {
	for _, line := range [][]string{{"status"}, {"history"}, {"purge-node", "worker-2", "--no-wait"}} {
		t.Run(line[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				d.holds()
				d.app.holderTimeout = time.Minute
				d.dials(nil, purging(t, journal.OutcomeDone))
				d.expect(d.types(line...), exitDone, "", "")

				d.app.holderTimeout = 0
				d.dials()
				d.expect(d.types(line...), exitFailed, "", "which does not listen")
			})
		})
	}
}
