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

// examined acts on the examination of a batch.
func (a *run) examined(g *group, batch []*stepState, found examination) {
	free(g, batch)
	rest, checks := a.mayStart(g, batch, found)
	if len(rest) == 0 {
		a.dropClaim(g)
		return
	}
	start := func(checks []Check) {
		a.unblock(g)
		a.passed(checks)
		a.warn(checks)
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

// free notes that the group's check is over.
func free(g *group, batch []*stepState) {
	g.busy = false
	for _, s := range batch {
		s.busy = false
	}
}

// mayStart returns the steps of the batch that may start, with the answers of their preflights. For the others it records
// why they do not start.
func (a *run) mayStart(g *group, batch []*stepState, found examination) ([]*stepState, []Check) {
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
			a.failed(s, found.err)
		}
		return nil, nil
	}
	checks := a.heldForLoss(a.lasting(found.checks))
	decisive := a.kind.gravest(checks, a.record)
	if decisive.Verdict.Kind == VerdictAbandon {
		if a.mayAbandon(found) {
			a.endEarly(journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: decisive.Verdict.Reason})
			return nil, nil
		}
		decisive.Verdict = decisive.Verdict.tooLate()
	}
	if rest = a.putAside(rest, found); len(rest) == 0 {
		return nil, nil
	}
	if decisive.Verdict.Kind == VerdictHold {
		a.noteDeferral(rest[0].planned, decisive.Preflight)
		if g.tries > 0 {
			for _, s := range rest {
				s.waited = 0 // the hold delays it now, not its vain attempts
			}
		}
		a.block(g, rest[0], decisive)
		return nil, nil
	}
	return rest, checks
}

// startUnlessUnknown starts a step, or fails it if its effect could not be verified.
func (a *run) startUnlessUnknown(s *stepState, unknown error) {
	if unknown != nil {
		a.failed(s, unknown)
		return
	}
	a.start(s)
}

// recordProved records the steps whose effect has happened already, and returns the others.
func (a *run) recordProved(batch []*stepState, found examination) (rest []*stepState) {
	for _, s := range batch {
		proof := found.proofs[s.planned.ID]
		if !proof.Done {
			rest = append(rest, s)
			continue
		}
		if s.group.heldStep == s.planned.ID {
			a.unblock(s.group)
		}
		a.note(s.startedSeq, journal.TypeStepDone, &journal.StepDone{
			Step: s.planned.ID, Attempt: s.attempt, Outputs: proof.Outputs, AlreadyDone: true,
		})
	}
	return rest
}

// putAside holds the steps whose remaining work has to wait, and returns the others.
func (a *run) putAside(batch []*stepState, found examination) (rest []*stepState) {
	for _, s := range batch {
		proof := found.proofs[s.planned.ID]
		if !proof.Waits {
			rest = append(rest, s)
			continue
		}
		s.waited = 0
		s.waits.wait(a.cfg.Retry)
		a.noteDeferral(s.planned, HoldItems)
		if s.group.heldStep == s.planned.ID {
			s.group.heldStep = "" // from now on it is the hold of this step alone
		}
		a.hold(s.planned.ID, Check{HoldItems, Hold(proof.Missing)})
	}
	return rest
}

// mayAbandon reports whether EKCO can be sure that nothing irreversible has happened.
func (a *run) mayAbandon(found examination) bool {
	switch {
	case a.undoing:
		return false // it is being undone already
	case !a.record.PastNoReturn:
		return true
	case len(a.undo) > 0:
		return false // it is past the point where its steps can be undone
	}
	return !slices.ContainsFunc(a.steps, func(s *stepState) bool {
		if !s.planned.Irreversible || !startedBefore(a.progress(s)) {
			return false
		}
		proof, looked := found.proofs[s.planned.ID]
		denied := s.code.Atomic && looked && proof.err == nil && !proof.Done
		return !denied
	})
}

// maxBriefTries is how often a [Verdict.Briefly] hold is checked without growing pauses.
const maxBriefTries = 12

// block makes a group wait for its preflights.
func (a *run) block(g *group, first *stepState, decisive Check) {
	if g.heldStep == "" {
		g.heldStep = first.planned.ID
	}
	if decisive.Verdict.young() {
		g.tries = 0 // only frequent checks show whether it lasts
	}
	if decisive.Verdict.Brief && g.brief < maxBriefTries {
		g.brief++
		g.tries = 0
	}
	g.wait(a.cfg.Retry)
	a.hold(g.heldStep, decisive)
}

func (a *run) unblock(g *group) {
	if g.heldStep != "" {
		a.release(g.heldStep)
	}
	g.heldStep, g.checkState, g.waitsFrom = "", checkState{busy: g.busy}, time.Time{}
}

// warn records the new warnings, with the answer by which the action continues: EKCO cannot ask a person here.
func (a *run) warn(checks []Check) {
	for _, check := range checks {
		answer := a.answerTo(check.Verdict)
		if answer == "" || !a.isNews(check) {
			continue
		}
		a.note(a.record.LastSeq, journal.TypeActionWarned, &journal.ActionWarned{
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

// start records the start of the step; the attempt begins when that is on disk.
func (a *run) start(s *stepState) {
	if s.group.changes && !s.group.irreversible {
		a.gatePassed = time.Time{} // the gate passed before this change
	}
	if s.waits.tries > 0 {
		a.release(s.planned.ID)
		s.waits = checkState{}
	}
	s.attempt = a.progress(s).Attempts + 1
	a.note(a.record.LastSeq, journal.TypeStepStarted, &journal.StepStarted{Step: s.planned.ID, Attempt: s.attempt})
	if a.record.Request.DryRun {
		a.note(a.record.LastSeq, journal.TypeStepDone, &journal.StepDone{Step: s.planned.ID, Attempt: s.attempt, DryRun: true})
		return
	}
	s.busy = true
	a.launches = append(a.launches, func() {
		step, work, waiting := a.contextFor(s.planned), a.effectContext(s), a.proofContext()
		step.note, step.mirrored = a.noteFunc(s), a.cfg.Preflights[Mirrored]
		step.ask, step.askedLast = a.askFunc(s, step), a.kind.askedLast
		a.async(func() func() {
			result := attempt(work, waiting, s.code, step)
			return func() { a.attempted(s, result) }
		})
	})
}

// effectContext returns the context in which a step has its effect.
func (a *run) effectContext(s *stepState) context.Context {
	if s.code.Interruptible && !a.undoing {
		return a.going
	}
	return a.work
}

// givenUp returns why a step of an action that ends early is not done.
func givenUp(err error) string {
	if errors.Is(err, context.Canceled) {
		return "cut short: the action was cancelled, or is no longer needed"
	}
	return err.Error()
}

// proofContext returns the context that bounds the wait for a proof. If the plan has undo steps, the wait ends with the
// action's early end: an effect that is undone need not be verified.
func (a *run) proofContext() context.Context {
	if len(a.undo) > 0 {
		return a.looking
	}
	return a.ctx
}

// attempted records the result of an attempt. While EKCO stops, it records only a success: the stop is no failure, and
// the next start verifies the open step. No step of an action that ends early is tried again.
func (a *run) attempted(s *stepState, result attemptResult) {
	s.busy = false
	switch {
	case result.err == nil:
		a.note(s.startedSeq, journal.TypeStepDone, &journal.StepDone{
			Step: s.planned.ID, Attempt: s.attempt, Outputs: result.outputs,
		})
	case a.stopping:
	case a.ending != nil && !a.undoing:
		a.note(s.startedSeq, journal.TypeStepFailed, &journal.StepFailed{
			Step: s.planned.ID, Attempt: s.attempt, Error: givenUp(result.err), CutShort: errors.Is(result.err, context.Canceled),
		})
	default:
		a.failed(s, result.err)
	}
}

// mustWait records that the remaining work has to wait. The next examination, which follows at once, puts the step
// aside. If it sees something to do although the attempt could do nothing, for example because a server refuses the
// change, further attempts back off, so that they do not fill the journal. The step is held with their error until one
// succeeds or fails otherwise.
func (a *run) mustWait(s *stepState, again string, err error) {
	backoff := time.Duration(0)
	if s.waited > 0 {
		backoff = a.cfg.Retry.afterHold(s.waited)
	}
	s.waited++
	s.next = time.Now().Add(backoff)
	a.note(s.startedSeq, journal.TypeStepFailed, &journal.StepFailed{
		Step: s.planned.ID, Attempt: s.attempt, Error: err.Error(), Outputs: a.newOutputs(s, err), Waits: true, Again: again, NextTry: a.cfg.Now().Add(backoff).UTC(),
	})
	if backoff > 0 {
		a.hold(s.planned.ID, Check{HoldNextAttempt, Hold(err.Error()).About(KeyOf(err))})
	}
}

// notRefused ends the hold that mustWait began.
func (a *run) notRefused(s *stepState) {
	s.waited = 0
	if a.record.Holds[s.planned.ID].Preflight == HoldNextAttempt {
		a.release(s.planned.ID)
	}
}

// newOutputs returns the outputs of a failed attempt if they differ from the recorded ones.
func (a *run) newOutputs(s *stepState, err error) json.RawMessage {
	unfinished, is := errors.AsType[*UnfinishedError](err)
	if !is || bytes.Equal(unfinished.Outputs, a.progress(s).Outputs) {
		return nil
	}
	return unfinished.Outputs
}

// worseTries is how many failures of a step stall the action when the last one left its node worse off.
const worseTries = 2

// budget returns how many failures of a step stall the action. The plan's Tries count only for attempts that began; the
// normal budget holds for those that could not, for example because the API server did not answer.
func (a *run) budget(s *stepState, err error) int {
	switch began, worse := outcomeOf(err); {
	case worse:
		return worseTries
	case began:
		return cmp.Or(s.planned.Tries, a.cfg.Retry.Budget)
	}
	return a.cfg.Retry.Budget
}

// outcomeOf reports whether a failed attempt had begun, and whether it left its node worse off.
func outcomeOf(err error) (began, worse bool) {
	if lost, is := errors.AsType[*lostError](err); is {
		return true, lost.worse
	}
	unseen, is := errors.AsType[*unseenError](err)
	return is, is && unseen.worse
}

// failed records a failure, and stalls the action when the step's budget is spent. The other steps continue.
func (a *run) failed(s *stepState, err error) {
	if unfinished, is := errors.AsType[*UnfinishedError](err); is && unfinished.Waits {
		a.mustWait(s, unfinished.Again, err)
		return
	}
	a.notRefused(s)
	failures := a.progress(s).Failures + 1
	failure := &journal.StepFailed{Step: s.planned.ID, Attempt: s.attempt, Error: err.Error(), Outputs: a.newOutputs(s, err)}
	_, failure.Worse = outcomeOf(err)
	spent := failures >= a.budget(s, err)
	s.exhausted = spent && !a.kind.RetriesStalled
	if !s.exhausted {
		backoff := a.cfg.Retry.afterFailure(failures)
		s.next, failure.NextTry = time.Now().Add(backoff), a.cfg.Now().Add(backoff).UTC()
	}
	a.note(s.startedSeq, journal.TypeStepFailed, failure)
	switch {
	case spent && a.mustUndo(s):
		a.endEarly(journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: fmt.Sprintf("step %s failed %d times: %v", s.planned.ID, failures, err)})
	case spent && a.record.Stalled == nil:
		a.note(a.record.LastSeq, journal.TypeActionStalled, &journal.ActionStalled{
			Step: s.planned.ID, Reason: fmt.Sprintf("failed %d times: %v", failures, err),
		})
	}
}
