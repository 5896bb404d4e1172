package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// foldAction folds the events of an action's life.
func (s *State) foldAction(e journal.Event, payload journal.Payload) {
	switch p := payload.(type) {
	case *journal.ActionRequested:
		s.foldRequested(e, p)
		return
	case *journal.ActionAdopted:
		s.foldAdopted(e, p)
		return
	case *journal.ActionRefused:
		return
	}
	rec := s.Actions[e.Action]
	if rec == nil {
		s.Problem(e, "no action %q is open", e.Action)
		return
	}
	s.own(rec)
	rec.LastSeq = e.Seq
	switch p := payload.(type) {
	case *journal.ActionPlanned:
		s.foldPlanned(e, rec, p)
	case *journal.ActionHeld:
		if rec.Holds == nil {
			rec.Holds = map[string]journal.ActionHeld{}
		}
		rec.Holds[p.Step] = *p
		s.stepAction(rec, actionHold)
	case *journal.ActionReleased:
		s.release(rec, p.Step)
	case *journal.ActionLeft:
		if rec.Left == nil {
			rec.Left = map[string]string{}
		}
		rec.Left[p.What] = p.Reason
	case *journal.StepStarted:
		s.foldStepStarted(e, rec, p)
	case *journal.StepDone:
		s.foldStepDone(e, rec, p)
	case *journal.StepFailed:
		s.foldStepFailed(e, rec, p)
	case *journal.ActionStalled:
		rec.Stalled = p
		s.stepAction(rec, actionStall)
	case *journal.ActionRetried:
		s.foldRetried(rec)
	case *journal.ActionCancelling:
		s.foldCancelling(rec, p)
	case *journal.ActionEnded:
		s.foldEnded(e, rec, p)
	case *journal.ActionWarned:
		s.foldWarned(e, p)
	case *journal.ActionJoined:
		rec.Joined = true
	}
}

func (s *State) foldRequested(e journal.Event, p *journal.ActionRequested) {
	if e.Action == "" || s.Actions[e.Action] != nil {
		s.Problem(e, "the action id %q is empty or in use", e.Action)
		return
	}
	s.open(&journal.ActionRecord{
		ID: e.Action, Kind: p.Kind, Subject: e.Subject, Status: Requested,
		RequestedBy: e.Actor, RequestedAt: e.Time, Request: *p, LastSeq: e.Seq,
	})
}

// foldAdopted opens an action of another journal. One that this journal's own
// mirror knows more of than the journal, which lost its newest events, goes on
// as the mirror has it.
func (s *State) foldAdopted(e journal.Event, p *journal.ActionAdopted) {
	rec := p.Record
	known := s.Actions[rec.ID] != nil && p.JournalID != s.Journal.ID
	if rec.ID == "" || (e.Action != "" && e.Action != rec.ID) || rec.Ended != nil || known {
		s.Problem(e, "the adopted action %q has ended, has another id than the event or is open already", rec.ID)
		return
	}
	rec.LastSeq = e.Seq
	rec.Status = statusOf(&rec)
	s.open(&rec)
	countAnew(&rec, e.Time)
	if s.Things[Key(rec.Subject)] == nil {
		s.adoptThing(e, rec.Subject)
	}
}

// open adds the action.
func (s *State) open(rec *journal.ActionRecord) {
	s.Actions[rec.ID] = rec
	s.openedOf(rec)
}

// statusOf derives the status of an action from the rest of its record. It is
// needed when another journal's record is adopted.
func statusOf(rec *journal.ActionRecord) journal.ActionStatus {
	switch {
	case rec.Stalled != nil && rec.Undoing():
		return Stalled
	case rec.Cancelling != nil && !rec.PastNoReturn:
		return Cancelling
	case rec.Stalled != nil:
		return Stalled
	case len(rec.Holds) > 0 || rec.Unreadable != "":
		return Held
	case rec.Planned:
		return Running
	}
	return Requested
}

func (s *State) foldPlanned(e journal.Event, rec *journal.ActionRecord, p *journal.ActionPlanned) {
	if rec.Planned {
		s.Problem(e, "the action %s is planned already", rec.ID)
		return
	}
	rec.Planned, rec.Plan = true, p.Plan
	s.stepAction(rec, actionPlan)
}

// release ends the hold of one step, and the action's when it was the last.
func (s *State) release(rec *journal.ActionRecord, step string) {
	if _, held := rec.Holds[step]; !held {
		return
	}
	delete(rec.Holds, step)
	if len(rec.Holds) == 0 && rec.Unreadable == "" {
		s.stepAction(rec, actionRelease)
	}
}

// foldCancelling ends what the action waited for: it goes no further forward.
func (s *State) foldCancelling(rec *journal.ActionRecord, p *journal.ActionCancelling) {
	if rec.PastNoReturn {
		return
	}
	rec.Cancelling, rec.Stalled, rec.Holds = p, nil, nil
	s.stepAction(rec, actionCancel)
}

func (s *State) foldStepStarted(e journal.Event, rec *journal.ActionRecord, p *journal.StepStarted) {
	planned := plannedStep(rec, p.Step)
	if planned == nil {
		s.Problem(e, "the plan of %s has no step %q", rec.ID, p.Step)
	}
	s.release(rec, p.Step)
	s.release(rec, "")
	step := rec.Steps[p.Step]
	if step.StartedAt.IsZero() {
		step.StartedAt = e.Time
	}
	step.Attempts, step.Open, step.NextTry = p.Attempt, true, time.Time{}
	setStep(rec, p.Step, step)
	if planned != nil && planned.Irreversible {
		s.passNoReturn(rec)
	}
}

// passNoReturn makes the action go only forward. A cancel that came too late
// is void.
func (s *State) passNoReturn(rec *journal.ActionRecord) {
	rec.PastNoReturn = true
	if rec.Cancelling != nil {
		rec.Cancelling = nil
		s.stepAction(rec, actionProceed)
	}
}

func (s *State) foldStepDone(e journal.Event, rec *journal.ActionRecord, p *journal.StepDone) {
	if plannedStep(rec, p.Step) == nil {
		s.Problem(e, "the plan of %s has no step %q", rec.ID, p.Step)
	}
	s.release(rec, p.Step)
	step := rec.Steps[p.Step]
	step.Attempts, step.DoneAt, step.Outputs = max(step.Attempts, p.Attempt), e.Time, p.Outputs
	step.Open, step.LastError, step.NextTry = false, "", time.Time{}
	setStep(rec, p.Step, step)
}

func (s *State) foldStepFailed(e journal.Event, rec *journal.ActionRecord, p *journal.StepFailed) {
	if plannedStep(rec, p.Step) == nil {
		s.Problem(e, "the plan of %s has no step %q", rec.ID, p.Step)
	}
	step := rec.Steps[p.Step]
	step.Attempts = max(step.Attempts, p.Attempt)
	step.Open, step.LastError, step.NextTry = false, p.Error, p.NextTry
	setStep(rec, p.Step, step)
}

// foldRetried gives every step that is not done its whole budget again: its
// attempts count from 0, and its next try is at once.
func (s *State) foldRetried(rec *journal.ActionRecord) {
	rec.Stalled, rec.Holds = nil, nil
	for id, step := range rec.Steps {
		if !step.Done() {
			step.Attempts, step.NextTry = 0, time.Time{}
			rec.Steps[id] = step
		}
	}
	if rec.Unreadable != "" {
		return
	}
	s.stepAction(rec, actionRetry)
	if rec.Cancelling != nil {
		s.stepAction(rec, actionCancel)
	}
}

func (s *State) foldEnded(e journal.Event, rec *journal.ActionRecord, p *journal.ActionEnded) {
	s.stepAction(rec, actionEnd)
	rec.Ended, rec.EndedAt = p, e.Time
	delete(s.Actions, rec.ID)
	delete(s.Warnings, rec.ID)
	delete(s.cache.shared, rec.ID)
	if s.obeys(rec, RuleCooldown) && startsCooldown(rec, p.Outcome) {
		s.EndedAt[rec.Kind] = e.Time
	}
	s.endedOf(e, rec, p)
}

// startsCooldown: an action does, unless it ended before it did anything.
func startsCooldown(rec *journal.ActionRecord, outcome journal.Outcome) bool {
	stopped := outcome == journal.OutcomeCancelled || outcome == journal.OutcomeAbandoned
	return !stopped || len(rec.Steps) > 0
}

func plannedStep(rec *journal.ActionRecord, id string) *journal.PlannedStep {
	step, planned := rec.Plan.Step(id)
	if !planned {
		return nil
	}
	return &step
}

func setStep(rec *journal.ActionRecord, id string, step journal.StepRecord) {
	if rec.Steps == nil {
		rec.Steps = map[string]journal.StepRecord{}
	}
	rec.Steps[id] = step
}
