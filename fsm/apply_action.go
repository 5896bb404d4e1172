package fsm

import (
	"github.com/replicatedhq/ekco/journal"
)

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
	s.unshare(rec)
	held, cancelling := isHeld(rec), rec.Cancelling != nil
	if err := rec.Fold(e, payload); err != nil {
		s.Problem(e, "%v", err)
	}
	if t := s.Things[Key(rec.Subject)]; t != nil {
		t.machine.Stepped(t, rec, e, payload)
	}
	s.changeStatusFor(rec, payload)
	if held && !isHeld(rec) {
		s.changeStatus(rec, actionRelease)
	}
	if cancelling && rec.Cancelling == nil {
		s.changeStatus(rec, actionProceed)
	}
	if rec.Ended != nil {
		s.close(e, rec)
	}
}

// isHeld reports whether the action has a hold, or is unreadable.
func isHeld(rec *journal.ActionRecord) bool { return len(rec.Holds) > 0 || rec.Unreadable != "" }

// changeStatusFor changes the status of the action as the event requires.
func (s *State) changeStatusFor(rec *journal.ActionRecord, payload journal.Payload) {
	switch payload.(type) {
	case *journal.ActionPlanned:
		s.addDomainsToOldPlan(rec)
		s.changeStatus(rec, actionPlan)
	case *journal.ActionHeld:
		s.changeStatus(rec, actionHold)
	case *journal.ActionStalled:
		s.changeStatus(rec, actionStall)
	case *journal.ActionRetried:
		s.changeStatusForRetry(rec)
	case *journal.ActionCancelling:
		if rec.Cancelling != nil {
			s.changeStatus(rec, actionCancel)
		}
	case *journal.ActionEnded:
		s.changeStatus(rec, actionEnd)
	}
}

// changeStatusForRetry changes the status after a retry. An unreadable action stays held, and a cancelled action stays
// cancelled.
func (s *State) changeStatusForRetry(rec *journal.ActionRecord) {
	if rec.Unreadable != "" {
		return
	}
	s.changeStatus(rec, actionRetry)
	if rec.Cancelling != nil {
		s.changeStatus(rec, actionCancel)
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

// foldAdopted opens an action from a mirror. If the action is already open in this journal, the mirror's record
// replaces it only if it has newer events: this journal lost its newest events, or another EKCO continued the action
// with another journal.
func (s *State) foldAdopted(e journal.Event, p *journal.ActionAdopted) {
	rec := p.Record
	known := s.Actions[rec.ID] != nil && p.JournalID != s.Journal.ID && !p.Continues
	if rec.ID == "" || (e.Action != "" && e.Action != rec.ID) || rec.Ended != nil || known {
		s.Problem(e, "the adopted action %q has ended, has another id than the event or is open already", rec.ID)
		return
	}
	rec = rec.Adopted(e)
	rec.Status = statusOf(&rec)
	s.addDomainsToOldPlan(&rec)
	s.open(&rec)
	restartTimes(&rec, e.Time)
	if s.Things[Key(rec.Subject)] == nil {
		s.adoptThing(e, rec.Subject)
	}
}

// addDomainsToOldPlan adds domains to a plan of an EKCO version that had no domains yet. Each step gets all domains of
// the kind of action, because such a plan does not say which steps change nothing.
func (s *State) addDomainsToOldPlan(rec *journal.ActionRecord) {
	if kind := s.Kind(rec.Kind); kind != nil && len(kind.Domains) > 0 && !rec.Plan.NamesDomains() {
		rec.Plan = rec.Plan.TakingDomains(kind.Domains)
	}
}

func (s *State) open(rec *journal.ActionRecord) {
	s.Actions[rec.ID] = rec
	s.callOpened(rec)
}

// statusOf computes the status of an action from its record, for an action from a mirror.
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

func (s *State) close(e journal.Event, rec *journal.ActionRecord) {
	p := rec.Ended
	delete(s.Actions, rec.ID)
	delete(s.cache.shared, rec.ID)
	if s.obeys(rec, RuleCooldown) && startsCooldown(rec, p.Outcome) {
		s.EndedAt[rec.Kind] = e.Time
	}
	s.storeEnding(e, rec, p)
}

// startsCooldown reports whether the end of the action starts a cooldown. It does unless the action was cancelled or
// abandoned before its first step.
func startsCooldown(rec *journal.ActionRecord, outcome journal.Outcome) bool {
	stopped := outcome == journal.OutcomeCancelled || outcome == journal.OutcomeAbandoned
	return !stopped || len(rec.Steps) > 0
}
