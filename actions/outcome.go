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

// examined acts on what a look at a batch has found.
func (a *run) examined(g *group, batch []*stepState, found examination) {
	free(g, batch)
	rest, checks := a.mayStart(g, batch, found)
	if len(rest) == 0 {
		a.leaveDomains(g)
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

// free notes that nothing is under way of the group.
func free(g *group, batch []*stepState) {
	g.busy = false
	for _, s := range batch {
		s.busy = false
	}
}

// mayStart returns the steps of the batch against which nothing speaks, with what
// their preflights said. Of the others it notes why they do not start.
func (a *run) mayStart(g *group, batch []*stepState, found examination) ([]*stepState, []Check) {
	if a.stopping || a.looking.Err() != nil {
		return nil, nil
	}
	a.leave(found.left)
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
				s.waited = 0 // it rests by that, and not since its attempts are in vain
			}
		}
		a.block(g, rest[0], decisive)
		return nil, nil
	}
	return rest, checks
}

// startUnlessUnknown starts a step, unless it could not be told whether it has happened.
func (a *run) startUnlessUnknown(s *stepState, unknown error) {
	if unknown != nil {
		a.failed(s, unknown)
		return
	}
	a.start(s)
}

// recordProved notes the steps whose effect is there already, and returns the
// others.
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

// putAside holds the steps of which all that is left has to wait, and returns the
// others.
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
			s.group.heldStep = "" // it is the step's own from here on, whatever the others do
		}
		a.hold(s.planned.ID, Check{HoldItems, Hold(proof.Missing)})
	}
	return rest
}

// mayAbandon reports whether nothing irreversible has happened, as far as can
// be known.
func (a *run) mayAbandon(found examination) bool {
	switch {
	case a.undoing:
		return false // it does already
	case !a.record.PastNoReturn:
		return true
	case len(a.undo) > 0:
		return false // there is no way back any more
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

// briefTries is how often what often takes seconds is asked without growing pauses.
const briefTries = 12

// block makes a group wait for its preflights.
func (a *run) block(g *group, first *stepState, decisive Check) {
	if g.heldStep == "" {
		g.heldStep = first.planned.ID
	}
	if decisive.Verdict.young() {
		g.tries = 0 // whether it lasts is seen only by looking often
	}
	if decisive.Verdict.Brief && g.brief < briefTries {
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
	g.heldStep, g.attention, g.waitsFrom = "", attention{busy: g.busy}, time.Time{}
}

// warn records the warnings that are not on record with an answer yet, and why
// EKCO goes on. Nobody is here to ask, so the action goes on.
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

// answerTo returns the answer with which a verdict is put on record, or "" if it
// is not.
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

// start notes the intent; the attempt begins once that is on disk.
func (a *run) start(s *stepState) {
	if s.group.changes && !s.group.irreversible {
		a.gatePassed = time.Time{} // it was let through before this
	}
	if s.waits.tries > 0 {
		a.release(s.planned.ID)
		s.waits = attention{}
	}
	s.attempt = a.progress(s).Attempts + 1
	a.note(a.record.LastSeq, journal.TypeStepStarted, &journal.StepStarted{Step: s.planned.ID, Attempt: s.attempt})
	if a.record.Request.DryRun {
		a.note(a.record.LastSeq, journal.TypeStepDone, &journal.StepDone{Step: s.planned.ID, Attempt: s.attempt, DryRun: true})
		return
	}
	s.busy = true
	a.launches = append(a.launches, func() {
		step, work, waiting := a.contextOf(s.planned), a.during(s), a.waiting()
		step.note, step.mirrored = a.notesOf(s), a.cfg.Preflights[Mirrored]
		step.ask, step.askedLast = a.asksOf(s, step), a.kind.askedLast
		a.async(func() func() {
			result := attempt(work, waiting, s.code, step)
			return func() { a.attempted(s, result) }
		})
	})
}

// during returns the context in which a step has its effect.
func (a *run) during(s *stepState) context.Context {
	if s.code.Interruptible && !a.undoing {
		return a.going
	}
	return a.work
}

// givenUp says why a step of an action that ends early is not done.
func givenUp(err error) string {
	if errors.Is(err, context.Canceled) {
		return "cut short: the action was cancelled, or is no longer needed"
	}
	return err.Error()
}

// waiting returns the context in which proofs are waited for. Who turns back need
// not know whether what is taken back had come to its end.
func (a *run) waiting() context.Context {
	if len(a.undo) > 0 {
		return a.looking
	}
	return a.ctx
}

// attempted notes how an attempt went. While stopping, only a success is noted:
// shutting down is no failure, and an open step is proved by the next start. Of an
// action that ends early no step is tried again.
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

// mustWait notes that all that is left has to wait. The next look, which comes at once,
// puts the step aside. If that sees something to do where the attempt saw nothing, as where
// the attempt is refused, the attempts that follow rest in between, so that they do not fill
// the journal, and why they are in vain holds the step until one is not.
func (a *run) mustWait(s *stepState, again string, err error) {
	rest := time.Duration(0)
	if s.waited > 0 {
		rest = a.cfg.Retry.afterHold(s.waited)
	}
	s.waited++
	s.next = time.Now().Add(rest)
	a.note(s.startedSeq, journal.TypeStepFailed, &journal.StepFailed{
		Step: s.planned.ID, Attempt: s.attempt, Error: err.Error(), Outputs: a.newOutputs(s, err), Waits: true, Again: again, NextTry: a.cfg.Now().Add(rest).UTC(),
	})
	if rest > 0 {
		a.hold(s.planned.ID, Check{HoldNextAttempt, Hold(err.Error()).About(KeyOf(err))})
	}
}

// notRefused ends the hold of a step whose attempts were in vain.
func (a *run) notRefused(s *stepState) {
	s.waited = 0
	if a.record.Holds[s.planned.ID].Preflight == HoldNextAttempt {
		a.release(s.planned.ID)
	}
}

// newOutputs returns the outputs of what a failed attempt did, if there are others than on
// record.
func (a *run) newOutputs(s *stepState, err error) json.RawMessage {
	unfinished, is := errors.AsType[*UnfinishedError](err)
	if !is || bytes.Equal(unfinished.Outputs, a.progress(s).Outputs) {
		return nil
	}
	return unfinished.Outputs
}

// worseTries is how many failures of a step stall the action when the last one left its node worse off.
const worseTries = 2

// budget returns how many failures of a step stall the action. An attempt that could not begin, as where the API
// server is away, is no try.
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

// failed notes a failure, and stalls the action when the step's budget is
// spent. The other steps go on.
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
		rest := a.cfg.Retry.afterFailure(failures)
		s.next, failure.NextTry = time.Now().Add(rest), a.cfg.Now().Add(rest).UTC()
	}
	a.note(s.startedSeq, journal.TypeStepFailed, failure)
	switch {
	case spent && a.mustTurnBack(s):
		a.endEarly(journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: fmt.Sprintf("step %s failed %d times: %v", s.planned.ID, failures, err)})
	case spent && a.record.Stalled == nil:
		a.note(a.record.LastSeq, journal.TypeActionStalled, &journal.ActionStalled{
			Step: s.planned.ID, Reason: fmt.Sprintf("failed %d times: %v", failures, err),
		})
	}
}
