package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// onFullDisk returns an operator whose journal could not be written for five
// minutes, in the middle of a purge.
func onFullDisk(t *testing.T) *fakeOperator {
	t.Helper()
	op := purging(t, journal.OutcomeDone)
	op.past = past(t, 2)
	op.verified.OK = true
	op.live, op.followed = op.live[:4], make(chan struct{})
	op.status = api.Status{
		Now: noon, AsOf: noon.Add(-5 * time.Minute), Operator: api.OperatorStatus{Running: true},
		Actions: []journal.ActionRecord{{ID: purgeID}}, Nodes: []api.NodeStatus{{Name: "worker-2"}},
		Journal: api.JournalStatus{Error: "write journal.db: no space left on device", UnwritableSince: noon.Add(-5 * time.Minute)},
	}
	return op
}

const fullDisk = "the journal cannot be written, since 2026-11-21T11:55:00Z (5m): write journal.db: no space left on device"

func TestEveryCommandSaysThatTheJournalCannotBeWrittenSinceWhenAndWhy(t *testing.T) {
	d := newDesk(t, onFullDisk(t))
	for _, typed := range []string{"history", "history --since all -o json", "journal verify", "journal export -", "purge-node worker-2 --dry-run"} {
		d.expect(d.types(strings.Fields(typed)...), exitDone, "", "warning: "+fullDisk+".")
	}
	d.expect(d.types("status"), exitDone, fullDisk, "")
	d.expect(d.types("status"), exitDone, "The nodes as EKCO saw them last, at 2026-11-21T11:55:00Z (5m ago):", "")
	d.expect(d.types("journal", "stat"), exitDone, "no: "+fullDisk, "")
}

// bound is how long a command may take that waits to be told to end.
const bound = 20 * time.Second

// turning is an operator whose status changes with each question.
type turning struct {
	*fakeOperator
	asked atomic.Int32
	of    func(question int32) api.Status
}

func (o *turning) Status(context.Context) (api.Status, error) { return o.of(o.asked.Add(1)), nil }

func TestWhoFollowsTheHistoryIsToldWhenTheJournalCannotBeWrittenAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &turning{fakeOperator: &fakeOperator{}}
		full := onFullDisk(t).status
		op.of = func(question int32) api.Status {
			if question == 3 { // one for what history says first, one for a start
				return full
			}
			return api.Status{Journal: api.JournalStatus{Writable: true}}
		}
		d := newDesk(t, nil)
		d.app.dial = func(context.Context, string, string) (operator, error) { return op, nil }
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		d.app.stderr = writerFunc(func(content []byte) (int, error) {
			if strings.Contains(string(content), "again") {
				cancel()
			}
			return d.errOut.Write(content)
		})
		d.expect(d.typesUntil(ctx, "history", "--follow", "--since", "all"), exitDone, "", "ekco: "+fullDisk+"\nekco: the journal can be written again\n")
	})
}

// watching gives the desk a clock that every look moves on, and ends a command
// when it has said something.
func (d *desk) watching(text string) context.Context {
	ctx, cancel := context.WithTimeout(d.t.Context(), bound)
	d.t.Cleanup(cancel)
	looks := 0
	d.app.now = func() time.Time {
		looks++
		return noon.Add(time.Duration(looks) * time.Minute)
	}
	d.app.stdout = writerFunc(func(content []byte) (int, error) {
		d.out.Write(content)
		if strings.Contains(string(content), text) {
			cancel()
		}
		return len(content), nil
	})
	return ctx
}

func TestAPurgeThatGoesSilentOnAFullDiskSaysWhatHasHappenedAndIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct{ unrecorded, want string }{
			{"delete-node is done", "delete-node is done, which is not recorded: " + fullDisk},
			{"", "delete-node has begun, and its result is not recorded: " + fullDisk},
		} {
			op := onFullDisk(t)
			op.status.Unrecorded = map[string]string{purgeID: test.unrecorded}
			d := newDesk(t, op)
			ctx := d.watching("free space on its file system")
			d.expect(d.typesUntil(ctx, "purge-node", "worker-2"), exitFailed, "  "+test.want+"\n", "the operator continues "+purgeID)
			if n := strings.Count(d.out.String(), fullDisk); n != 1 {
				t.Errorf("says it %d times:\n%s", n, d.out)
			}
		}
	})
}

func TestNobodyIsAskedAboutAPurgeThatCannotBeRecorded(t *testing.T) {
	op := onFullDisk(t)
	op.explained.Checks = []api.CheckResult{warning("StormBrake")}
	d := newDesk(t, op)
	d.app.askable = true
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "node worker-2 is not purged: "+fullDisk+"; nothing was changed")
	if len(op.requests) != 0 || strings.Contains(d.errOut.String(), "[y/N]") {
		t.Errorf("asked for %+v; said %s", op.requests, d.errOut)
	}
}

func TestWithoutTroubleNothingIsSaidOfIt(t *testing.T) {
	op := onFullDisk(t)
	op.status.Journal = api.JournalStatus{Writable: true}
	d := newDesk(t, op)
	for _, typed := range []string{"history --since all", "journal verify", "journal export -", "purge-node worker-2 --dry-run"} {
		d.expect(d.types(strings.Fields(typed)...), exitDone, "", "")
		if d.errOut.Len() != 0 {
			t.Errorf("%s: said %s", typed, d.errOut)
		}
	}
	if got := journalTrouble(t.Context(), &fakeOperator{err: errors.New("no status")}); got != "" {
		t.Errorf("without a status: %s", got)
	}
}
