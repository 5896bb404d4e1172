package actions

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// These holds have no preflight.
const (
	// HoldPlan means that the action could not be planned yet.
	HoldPlan = "Plan"
	// HoldAnswer means that a check has not answered yet. It is not the check's name, because a hold by the check
	// itself may have other effects on the action.
	HoldAnswer = "Answer"
	// HoldReadable means that this EKCO cannot read or run the action.
	HoldReadable = "Readable"
	// HoldNextAttempt means that a failed step waits for its next attempt; see [journal.HoldNextAttempt].
	HoldNextAttempt = journal.HoldNextAttempt
)

// decide prepares the next events and launches. It returns the time to decide again if no result arrives earlier; the
// zero time means never.
func (a *run) decide() (wake time.Time) {
	switch {
	case a.stopping || a.record.Ended != nil:
		return time.Time{}
	case a.unfitReason != nil:
		a.recordHold("", Check{HoldReadable, Hold(a.unfitReason.Error())})
		return time.Time{}
	}
	a.considerCancel()
	switch {
	case a.ending != nil:
		return a.windUp()
	case !a.record.Planned:
		return a.makePlan()
	}
	a.endStepHold("")
	if a.allDone() {
		a.draftEvent(a.record.LastSeq, journal.TypeActionEnded, &journal.ActionEnded{Outcome: a.successOutcome(), Reason: a.leftAloneText(a.steps)})
		return time.Time{}
	}
	return a.startDue(time.Now(), a.steps)
}

func (a *run) successOutcome() journal.Outcome {
	switch {
	case a.record.Request.DryRun:
		return journal.OutcomeDryRun
	case a.kind.Partial && a.hasMissing():
		return journal.OutcomePartial
	}
	return journal.OutcomeDone
}

// considerCancel ends the action early if that was requested and is still possible.
func (a *run) considerCancel() {
	if !a.cancel || a.ending != nil {
		return
	}
	a.cancel = false
	if a.record.PastNoReturn {
		a.log.Warn("the action is not cancelled: it is past its point of no return")
		return
	}
	ended := journal.ActionEnded{Outcome: journal.OutcomeCancelled}
	if a.record.CancellingBy == actorOperator {
		ended.Outcome = journal.OutcomeAbandoned
	}
	if a.record.Cancelling != nil {
		ended.Reason = a.record.Cancelling.Reason
	}
	a.endEarly(ended)
}

// endEarly prevents that more steps start. Interruptible steps are cut short; other running steps finish. Then
// [run.windUp] ends the action.
func (a *run) endEarly(ended journal.ActionEnded) {
	a.ending = &ended
	for _, g := range a.groups {
		if !g.busy {
			a.dropClaim(g)
		}
	}
	a.stopInterruptible()
	a.stopLooking()
}

// makePlan plans the action, unless it is planning or backing off.
func (a *run) makePlan() (wake time.Time) {
	if a.planning.busy {
		return time.Time{}
	}
	if now := time.Now(); now.Before(a.planning.next) {
		return a.planning.next
	}
	a.planning.markRunning()
	record, looking, pending := snapshot(a.record), a.looking, a.beginCheck(nil, "")
	pending.addQuestion(HoldPlan)
	a.startAsync(func() func() {
		made, err := a.plan(looking, a.kind, record)
		return func() {
			a.endCheck(pending)
			a.planMade(made, err)
		}
	})
	return time.Time{}
}

func (a *run) planMade(made journal.Plan, err error) {
	a.planning.busy = false
	switch {
	case a.stopping || a.ending != nil || a.looking.Err() != nil:
	case err != nil:
		a.planning.backOff(a.cfg.Retry)
		a.recordHold("", Check{HoldPlan, Hold(err.Error()).About(KeyOf(err))})
	default:
		a.endStepHold("")
		a.draftEvent(a.record.LastSeq, journal.TypeActionPlanned, &journal.ActionPlanned{Plan: made})
		a.takePlan()
	}
}

// startDue examines the steps that may start now, one group after the other, while at most maxConcurrent steps are
// busy. It returns when the next step may start.
func (a *run) startDue(now time.Time, steps []*stepState) (wake time.Time) {
	room := maxConcurrent - a.busySteps()
	var order []*group
	batches := make(map[*group][]*stepState)
	for _, s := range steps {
		if !a.isReady(s) {
			continue
		}
		if from := later(later(s.next, s.waits.next), s.group.next); now.Before(from) {
			wake = earlier(wake, from)
			continue
		}
		if s.group.busy || room == 0 {
			continue // the result of the running step triggers the next turn
		}
		room--
		if batches[s.group] == nil {
			order = append(order, s.group)
		}
		batches[s.group] = append(batches[s.group], s)
	}
	for _, g := range order {
		a.examineBatch(g, batches[g])
	}
	return wake
}

func (a *run) examineBatch(g *group, batch []*stepState) {
	g.markRunning()
	candidates := make([]candidate, len(batch))
	contexts := make(map[string]StepContext, len(batch))
	for i, s := range batch {
		s.busy, s.waits.again = true, false
		candidates[i] = candidate{
			planned: s.planned, code: s.code,
			prove: (startedBefore(a.stepRecord(s)) || g.claimed == s.planned.ID && s.code.MayBeForgone) && !a.record.Request.DryRun,
		}
		contexts[s.planned.ID] = a.contextFor(s.planned)
	}
	looking, preflights := a.looking, a.askedBefore(g, batch[0].planned.Preflights)
	if a.mustFinish(g, batch) {
		preflights = []string{SafeMode}
	}
	look := func() {
		pending := a.beginCheck(g, batch[0].planned.ID)
		a.startAsync(func() func() {
			found := a.examine(looking, a.kind, contexts, candidates, preflights, pending)
			return func() {
				a.endCheck(pending)
				a.handleExamination(g, batch, found)
			}
		})
	}
	if slices.Contains(preflights, Mirrored) {
		// Launch it after this turn's events are on disk: otherwise the mirror would lack the plan.
		a.launches = append(a.launches, look)
		return
	}
	look()
}

func (t *checkState) markRunning() { t.busy, t.again = true, false }

// backOff schedules the next check after a backoff, which grows each time.
func (t *checkState) backOff(policy RetryPolicy) {
	if t.again {
		t.next = time.Time{}
		return
	}
	t.tries++
	t.next = time.Now().Add(policy.afterHold(t.tries))
}

func (t *checkState) scheduleNow() { t.next, t.again = time.Time{}, t.busy }
