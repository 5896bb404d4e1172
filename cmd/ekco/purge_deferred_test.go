package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// deferring returns an operator whose purge waits for Ceph with all else done.
func deferring(t *testing.T) *fakeOperator {
	t.Helper()
	op := purging(t, journal.OutcomeDone)
	hold := journal.ActionHeld{Step: "purge-osd 3", Preflight: "CephAnswers", Reason: "no mgr"}
	op.live = []journal.Event{
		event(t, 10, purgeID, journal.TypeStepStarted, journal.StepStarted{Step: "delete-node", Attempt: 1}),
		event(t, 11, purgeID, journal.TypeActionHeld, hold),
		event(t, 12, purgeID, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 1}),
	}
	op.status.Actions = []journal.ActionRecord{{
		ID: purgeID, Kind: journal.ActionPurgeNode, PastNoReturn: true, Holds: map[string]journal.ActionHeld{hold.Step: hold},
		Plan: journal.Plan{Steps: []journal.PlannedStep{
			{ID: "delete-node"}, {ID: "purge-osd 3", MayWaitFor: "CephAnswers"}, {ID: "purge-osd 12", MayWaitFor: "CephAnswers"},
		}},
		Steps: map[string]journal.StepRecord{"delete-node": {DoneAt: noon}},
	}}
	return op
}

func TestD1APurgeThatOnlyWaitsForCephSucceedsWithAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deferring(t))
		d.expect(d.types("purge-node", "worker-2"), exitDone, "node worker-2 is purged; 2 steps wait for Ceph, after ", "2 steps wait for Ceph: purge-osd 3, purge-osd 12")
		for _, want := range []string{"no mgr", "EKCO finishes " + purgeID} {
			if !strings.Contains(d.errOut.String(), want) {
				t.Errorf("standard error has no %q:\n%s", want, d.errOut)
			}
		}
	})
}

// TestAPurgeThatIsNotDoneButForCephIsFollowedOn: whatever else waits for Ceph meanwhile.
func TestAPurgeThatIsNotDoneButForCephIsFollowedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := deferring(t)
		other, own := op.status.Actions[0], op.status.Actions[0]
		other.ID, own.Steps = "purge-worker-1-3", nil
		op.status.Actions = []journal.ActionRecord{other, own}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		d := newDesk(t, op)
		d.expect(d.typesUntil(ctx, "purge-node", "worker-2"), exitFailed, "", "interrupted; the operator continues "+purgeID)
		if strings.Contains(d.out.String(), "is purged") {
			t.Errorf("it says\n%s", d.out)
		}
	})
}

func TestALongReasonIsSaidOnceAndTheTimeIsThatOfTheLastNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := deferring(t)
		cause := "find a pod to run ceph in: " + strings.Repeat("none of the pods runs; ", 10)
		op.explained.Checks = []api.CheckResult{
			{Preflight: "CephHealthy", Verdict: actions.VerdictWarn, Reason: "cannot tell whether Ceph is well: " + cause},
			{Preflight: "OSDSafeToDestroy", Verdict: actions.VerdictWarn, Reason: "cannot tell whether OSDs are safe: " + cause},
			{Preflight: "CephAnswers", Verdict: actions.VerdictHold, Reason: cause},
		}
		d := newDesk(t, op)
		d.app.deferredAfter = time.Minute
		d.app.now = func() time.Time {
			if strings.Contains(d.out.String(), "delete-node is done") { // the last news
				return noon.Add(time.Hour)
			}
			return noon
		}
		d.expect(d.types("purge-node", "worker-2"), exitDone, "node worker-2 is purged; 2 steps wait for Ceph, after ", "cannot tell whether OSDs are safe: (see above) (OSDSafeToDestroy)")
		if strings.Contains(d.out.String(), "after 1h") {
			t.Errorf("the time in which nothing happened counts:\n%s", d.out)
		}
		if got := strings.Count(d.errOut.String(), "none of the pods"); got != 10 {
			t.Errorf("the reason was said %d times, want once:\n%s", got/10, d.errOut)
		}
		for _, warning := range op.request(t).Warned {
			if !strings.Contains(warning.Warning, cause) {
				t.Errorf("on record is only %q", warning.Warning)
			}
		}
	})
}

func TestAskingAgainForAPurgeThatWaitsForCephSaysSoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := deferring(t)
		op.admitted.Resumed, op.live = true, nil
		d := newDesk(t, op)
		d.expect(d.types("purge-node", "worker-2"), exitDone, "resuming "+purgeID, "CephAnswers")
	})
}

func TestAHoldNamesACancelOnlyIfOneWouldBeAccepted(t *testing.T) {
	for _, past := range []bool{true, false} {
		op := deferring(t)
		op.status.Actions[0].PastNoReturn = past
		op.live = append(op.live, event(t, 13, purgeID, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDone}))
		d := newDesk(t, op)
		d.types("purge-node", "worker-2")
		if offered := strings.Contains(d.out.String(), "ekco cancel "+purgeID); offered == past || !strings.Contains(d.out.String(), "automatically when that is gone") {
			t.Errorf("past the point of no return %v, a cancel is offered: %v\n%s", past, offered, d.out)
		}
	}
}

func TestStatusSaysWhatWaitsForCeph(t *testing.T) {
	d := newDesk(t, deferring(t))
	d.expect(d.types("status"), exitDone, "the other steps are done; 2 steps wait for Ceph: purge-osd 3, purge-osd 12", "")
}

func TestAPurgeThatWillBeRefusedIsNotAskedAboutAndIsOnRecord(t *testing.T) {
	op := purging(t, journal.OutcomeAbandoned)
	op.explained.Checks = []api.CheckResult{
		{Preflight: "CephHealthy", Verdict: actions.VerdictWarn, Reason: "degraded"},
		{Preflight: "EtcdQuorumKept", Verdict: actions.VerdictAbandon, Reason: "one of two would answer"},
	}
	d := newDesk(t, op)
	d.app.askable = true
	d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "will be refused: one of two would answer")
	if len(op.requests) != 1 || strings.Contains(d.errOut.String(), "[y/N]") {
		t.Errorf("requested %v, said %s", op.requests, d.errOut)
	}
}
