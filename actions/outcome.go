package actions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func (a *run) handleExamination(g *group, batch []*stepState, found examination) {
	endGroupCheck(g, batch)
	rest, checks := a.startableSteps(g, batch, found)
	if len(rest) == 0 {
		a.dropClaim(g)
		return
	}
	start := func(checks []Check) {
		a.endHold(g)
		a.recordGatePassed(checks)
		a.recordWarnings(checks)
		for _, s := range rest {
			a.startUnlessUnknown(s, found.proofs[s.planned.ID].err)
		}
	}
	startable := slices.DeleteFunc(slices.Clone(rest), func(s *stepState) bool { return found.proofs[s.planned.ID].err != nil })
	if a.takesDomains(g) && len(startable) > 0 && !a.mustFinish(g, startable) {
		a.takeDomains(g, startable, checks, start)
		return
	}
	start(checks)
}

// endGroupCheck records that the group's check has ended.
func endGroupCheck(g *group, batch []*stepState) {
	g.busy = false
	for _, s := range batch {
		s.busy = false
	}
}

// startableSteps returns the steps of the batch that may start, with the answers of their preflights. For the other
// steps it records why they do not start.
func (a *run) startableSteps(g *group, batch []*stepState, found examination) ([]*stepState, []Check) {
	if a.stopping || a.looking.Err() != nil {
		return nil, nil
	}
	a.recordLeft(found.left)
	rest := a.recordProved(batch, found)
	if len(rest) == 0 {
		return nil, nil
	}
	if found.err != nil {
		for _, s := range rest {
			a.recordFailure(s, found.err)
		}
		return nil, nil
	}
	checks := a.heldForLoss(a.holdUntilLasting(found.checks))
	decisive := a.kind.gravest(checks, a.record)
	if decisive.Verdict.Kind == VerdictAbandon {
		if a.mayAbandon(found) {
			a.endEarly(journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: decisive.Verdict.Reason})
			return nil, nil
		}
		decisive.Verdict = decisive.Verdict.holdIfTooLate()
	}
	if rest = a.holdWaiting(rest, found); len(rest) == 0 {
		return nil, nil
	}
	if decisive.Verdict.Kind == VerdictHold {
		a.noteDeferral(rest[0].planned, decisive.Preflight)
		if g.tries > 0 {
			for _, s := range rest {
				s.waited = 0 // the hold delays the step now, not its failed attempts
			}
		}
		a.holdGroup(g, rest[0], decisive)
		return nil, nil
	}
	return rest, checks
}

// startUnlessUnknown starts a step, or fails it if its effect could not be verified.
func (a *run) startUnlessUnknown(s *stepState, unknown error) {
	if unknown != nil {
		a.recordFailure(s, unknown)
		return
	}
	a.startStep(s)
}

// recordProved records the steps whose effect has already happened, and returns the others.
func (a *run) recordProved(batch []*stepState, found examination) (rest []*stepState) {
	for _, s := range batch {
		proof := found.proofs[s.planned.ID]
		if !proof.Done {
			rest = append(rest, s)
			continue
		}
		if s.group.heldStep == s.planned.ID {
			a.endHold(s.group)
		}
		a.draftEvent(s.startedSeq, journal.TypeStepDone, &journal.StepDone{
			Step: s.planned.ID, Attempt: s.attempt, Outputs: proof.Outputs, AlreadyDone: true,
		})
	}
	return rest
}

// holdWaiting holds the steps that have to wait, and returns the others.
func (a *run) holdWaiting(batch []*stepState, found examination) (rest []*stepState) {
	for _, s := range batch {
		proof := found.proofs[s.planned.ID]
		if !proof.Waits {
			rest = append(rest, s)
			continue
		}
		s.waited = 0
		s.waits.backOff(a.cfg.Retry)
		a.noteDeferral(s.planned, HoldItems)
		if s.group.heldStep == s.planned.ID {
			s.group.heldStep = "" // from now on only this step has the hold
		}
		a.recordHold(s.planned.ID, Check{HoldItems, Hold(proof.Missing)})
	}
	return rest
}

// mayAbandon reports whether EKCO is sure that nothing irreversible has happened.
func (a *run) mayAbandon(found examination) bool {
	switch {
	case a.undoing:
		return false // EKCO is already undoing it
	case !a.record.PastNoReturn:
		return true
	case len(a.undo) > 0:
		return false // its steps can no longer be undone
	}
	return !slices.ContainsFunc(a.steps, func(s *stepState) bool {
		if !s.planned.Irreversible || !startedBefore(a.stepRecord(s)) {
			return false
		}
		proof, looked := found.proofs[s.planned.ID]
		denied := s.code.Atomic && looked && proof.err == nil && !proof.Done
		return !denied
	})
}

// maxBriefTries is the number of checks without growing pauses for a [Verdict.Briefly] hold.
const maxBriefTries = 12

// holdGroup makes a group wait for its preflights.
func (a *run) holdGroup(g *group, first *stepState, decisive Check) {
	if g.heldStep == "" {
		g.heldStep = first.planned.ID
	}
	if decisive.Verdict.isTooYoung() {
		g.tries = 0 // only frequent checks can show whether it lasts
	}
	if decisive.Verdict.Brief && g.brief < maxBriefTries {
		g.brief++
		g.tries = 0
	}
	g.backOff(a.cfg.Retry)
	a.recordHold(g.heldStep, decisive)
}

func (a *run) endHold(g *group) {
	if g.heldStep != "" {
		a.endStepHold(g.heldStep)
	}
	g.heldStep, g.checkState, g.waitsFrom = "", checkState{busy: g.busy}, time.Time{}
}

// recordWarnings records the new warnings together with the answer that lets the action continue, because EKCO cannot
// ask a person here.
func (a *run) recordWarnings(checks []Check) {
	for _, check := range checks {
		answer := a.answerTo(check.Verdict)
		if answer == "" || !a.mustRecordWarning(check) {
			continue
		}
		a.draftEvent(a.record.LastSeq, journal.TypeActionWarned, &journal.ActionWarned{
			Preflight: check.Preflight, Key: check.Verdict.Key, Warning: check.Verdict.Reason, Answer: answer,
		})
	}
}

// answerTo returns the answer to record with a verdict, or "" if EKCO does not record it.
func (a *run) answerTo(v Verdict) string {
	switch {
	case v.Kind == VerdictPass && v.Reason != "":
		return journal.AnswerAutomatic
	case v.Kind != VerdictWarn:
		return ""
	case a.record.Request.Force:
		return "--force"
	}
	return "no terminal"
}

// startStep records the start of the step. The attempt begins when that event is on disk.
func (a *run) startStep(s *stepState) {
	if s.group.changes && !s.group.irreversible {
		a.gatePassed = time.Time{} // this change may invalidate the gate's answers
	}
	if s.waits.tries > 0 {
		a.endStepHold(s.planned.ID)
		s.waits = checkState{}
	}
	s.attempt = a.stepRecord(s).Attempts + 1
	a.draftEvent(a.record.LastSeq, journal.TypeStepStarted, &journal.StepStarted{Step: s.planned.ID, Attempt: s.attempt})
	if a.record.Request.DryRun {
		a.draftEvent(a.record.LastSeq, journal.TypeStepDone, &journal.StepDone{Step: s.planned.ID, Attempt: s.attempt, DryRun: true})
		return
	}
	s.busy = true
	a.launches = append(a.launches, func() {
		step, work, waiting := a.contextFor(s.planned), a.effectContext(s), a.proofContext()
		step.note, step.mirrored = a.noteFunc(s), a.cfg.Preflights[Mirrored]
		step.ask, step.askedLast = a.askFunc(s, step), a.kind.isLastPreflight
		a.startAsync(func() func() {
			result := attempt(work, waiting, s.code, step)
			return func() { a.recordAttempt(s, result) }
		})
	})
}

// effectContext returns the context for the effect of a step.
func (a *run) effectContext(s *stepState) context.Context {
	if s.code.Interruptible && !a.undoing {
		return a.interruptible
	}
	return a.work
}

// cutShortReason returns the reason why an action that ends early did not finish a step.
func cutShortReason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "cut short: the action was cancelled, or is no longer needed"
	}
	return err.Error()
}

// proofContext returns the context that limits the wait for a proof. If the plan has undo steps, the wait stops when
// the action ends early, because an effect that will be undone need not be verified.
func (a *run) proofContext() context.Context {
	if len(a.undo) > 0 {
		return a.looking
	}
	return a.ctx
}

// recordAttempt records the result of an attempt. While EKCO stops, it records only a success: the stop is no failure,
// and the next EKCO verifies the open step. An action that ends early does not retry its steps.
func (a *run) recordAttempt(s *stepState, result attemptResult) {
	s.busy = false
	switch {
	case result.err == nil:
		a.draftEvent(s.startedSeq, journal.TypeStepDone, &journal.StepDone{
			Step: s.planned.ID, Attempt: s.attempt, Outputs: result.outputs,
		})
	case a.stopping:
	case a.ending != nil && !a.undoing:
		a.draftEvent(s.startedSeq, journal.TypeStepFailed, &journal.StepFailed{
			Step: s.planned.ID, Attempt: s.attempt, Error: cutShortReason(result.err), CutShort: errors.Is(result.err, context.Canceled),
		})
	default:
		a.recordFailure(s, result.err)
	}
}

// recordWait records that the remaining work has to wait. The next examination follows at once and normally holds the
// step. It may find work although the attempt could do nothing, for example because a server refuses the change. Then
// further attempts back off, so that they do not fill the journal, and their error holds the step until an attempt
// succeeds or fails in another way.
func (a *run) recordWait(s *stepState, again string, err error) {
	backoff := time.Duration(0)
	if s.waited > 0 {
		backoff = a.cfg.Retry.afterHold(s.waited)
	}
	s.waited++
	s.next = time.Now().Add(backoff)
	a.draftEvent(s.startedSeq, journal.TypeStepFailed, &journal.StepFailed{
		Step: s.planned.ID, Attempt: s.attempt, Error: err.Error(), Outputs: a.newOutputs(s, err), Waits: true, Again: again, NextTry: a.cfg.Now().Add(backoff).UTC(),
	})
	if backoff > 0 {
		a.recordHold(s.planned.ID, Check{HoldNextAttempt, Hold(err.Error()).About(KeyOf(err))})
	}
}

// endWaitHold ends the hold that began after recordWait.
func (a *run) endWaitHold(s *stepState) {
	s.waited = 0
	if a.record.Holds[s.planned.ID].Preflight == HoldNextAttempt {
		a.endStepHold(s.planned.ID)
	}
}

// newOutputs returns the outputs of a failed attempt if they differ from the recorded outputs.
func (a *run) newOutputs(s *stepState, err error) json.RawMessage {
	unfinished, is := errors.AsType[*UnfinishedError](err)
	if !is || bytes.Equal(unfinished.Outputs, a.stepRecord(s).Outputs) {
		return nil
	}
	return unfinished.Outputs
}

// maxFailuresIfWorse is the number of failures that stall the action if the last one made the state of the step's node
// worse.
const maxFailuresIfWorse = 2

// failureBudget returns the number of failures of a step that stall the action. The plan's Tries limit only attempts
// that began. An attempt may fail before it begins, for example because the API server does not answer; then the normal
// budget applies.
func (a *run) failureBudget(s *stepState, err error) int {
	switch began, worse := outcomeOf(err); {
	case worse:
		return maxFailuresIfWorse
	case began:
		return cmp.Or(s.planned.Tries, a.cfg.Retry.Budget)
	}
	return a.cfg.Retry.Budget
}

// outcomeOf reports whether a failed attempt had begun, and whether it made the state of its node worse.
func outcomeOf(err error) (began, worse bool) {
	if lost, is := errors.AsType[*lostError](err); is {
		return true, lost.worse
	}
	unseen, is := errors.AsType[*unseenError](err)
	return is, is && unseen.worse
}

// recordFailure records a failure, and stalls the action when the step's budget is spent. The other steps continue.
func (a *run) recordFailure(s *stepState, err error) {
	if unfinished, is := errors.AsType[*UnfinishedError](err); is && unfinished.Waits {
		a.recordWait(s, unfinished.RepeatStep, err)
		return
	}
	a.endWaitHold(s)
	failures := a.stepRecord(s).Failures + 1
	failure := &journal.StepFailed{Step: s.planned.ID, Attempt: s.attempt, Error: err.Error(), Outputs: a.newOutputs(s, err)}
	_, failure.Worse = outcomeOf(err)
	spent := failures >= a.failureBudget(s, err)
	s.exhausted = spent && !a.kind.RetriesStalled
	if !s.exhausted {
		backoff := a.cfg.Retry.afterFailure(failures)
		s.next, failure.NextTry = time.Now().Add(backoff), a.cfg.Now().Add(backoff).UTC()
	}
	a.draftEvent(s.startedSeq, journal.TypeStepFailed, failure)
	switch {
	case spent && a.mustUndo(s):
		a.endEarly(journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: fmt.Sprintf("step %s failed %d times: %v", s.planned.ID, failures, err)})
	case spent && a.record.Stalled == nil:
		a.draftEvent(a.record.LastSeq, journal.TypeActionStalled, &journal.ActionStalled{
			Step: s.planned.ID, Reason: fmt.Sprintf("failed %d times: %v", failures, err),
		})
	}
}
