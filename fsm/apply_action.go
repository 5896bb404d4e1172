package fsm

import (
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
	held, cancelling := waits(rec), rec.Cancelling != nil
	if err := rec.Fold(e, payload); err != nil {
		s.Problem(e, "%v", err)
	}
	if t := s.Things[Key(rec.Subject)]; t != nil {
		t.machine.Stepped(t, rec, e, payload)
	}
	s.stepFor(rec, payload)
	if held && !waits(rec) {
		s.stepAction(rec, actionRelease)
	}
	if cancelling && rec.Cancelling == nil {
		s.stepAction(rec, actionProceed)
	}
	if rec.Ended != nil {
		s.close(e, rec)
	}
}

// waits reports whether something holds the action.
func waits(rec *journal.ActionRecord) bool { return len(rec.Holds) > 0 || rec.Unreadable != "" }

// stepFor moves the status for what an event says outright.
func (s *State) stepFor(rec *journal.ActionRecord, payload journal.Payload) {
	switch payload.(type) {
	case *journal.ActionPlanned:
		s.takeDomains(rec)
		s.stepAction(rec, actionPlan)
	case *journal.ActionHeld:
		s.stepAction(rec, actionHold)
	case *journal.ActionStalled:
		s.stepAction(rec, actionStall)
	case *journal.ActionRetried:
		s.stepRetried(rec)
	case *journal.ActionCancelling:
		if rec.Cancelling != nil {
			s.stepAction(rec, actionCancel)
		}
	case *journal.ActionEnded:
		s.stepAction(rec, actionEnd)
	}
}

// stepRetried: what cannot be read stays held, and what is cancelled stays so.
func (s *State) stepRetried(rec *journal.ActionRecord) {
	if rec.Unreadable != "" {
		return
	}
	s.stepAction(rec, actionRetry)
	if rec.Cancelling != nil {
		s.stepAction(rec, actionCancel)
	}
}

func (s *State) foldRequested(e journal.Event, p *journal.ActionRequested) {
	if e.Action == "" || s.Actions[e.Action] != nil {
		s.Problem(e, "the action id %q is empty or in use", e.Action)
		return
	}
	rec := journal.OpenedBy(e, p)
	rec.Status = Requested
	s.open(&rec)
}

// foldAdopted opens an action of another journal. One that a mirror knows more of than this
// journal, which lost its newest events or was away meanwhile, goes on as the mirror has it.
func (s *State) foldAdopted(e journal.Event, p *journal.ActionAdopted) {
	rec := p.Record
	known := s.Actions[rec.ID] != nil && p.JournalID != s.Journal.ID && !p.Continues
	if rec.ID == "" || (e.Action != "" && e.Action != rec.ID) || rec.Ended != nil || known {
		s.Problem(e, "the adopted action %q has ended, has another id than the event or is open already", rec.ID)
		return
	}
	rec = rec.Adopted(e)
	rec.Status = statusOf(&rec)
	s.takeDomains(&rec)
	s.open(&rec)
	countAnew(&rec, e.Time)
	if s.Things[Key(rec.Subject)] == nil {
		s.adoptThing(e, rec.Subject)
	}
}

// takeDomains lets the steps of a plan that was made before there were domains take those
// of their kind: nothing says which of them change nothing. No other plan of a kind that
// has domains names none.
func (s *State) takeDomains(rec *journal.ActionRecord) {
	if kind := s.Kind(rec.Kind); kind != nil && len(kind.Domains) > 0 && !rec.Plan.NamesDomains() {
		rec.Plan = rec.Plan.TakingDomains(kind.Domains)
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

// close forgets an action that has ended, but for what its machine keeps of it.
func (s *State) close(e journal.Event, rec *journal.ActionRecord) {
	p := rec.Ended
	delete(s.Actions, rec.ID)
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
