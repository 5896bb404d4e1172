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
		s.problem(e, "no action %q is open", e.Action)
		return
	}
	s.own(rec)
	held, cancelling := waits(rec), rec.Cancelling != nil
	if err := rec.Fold(e, payload); err != nil {
		s.problem(e, "%v", err)
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
		s.problem(e, "the action id %q is empty or in use", e.Action)
		return
	}
	rec := journal.OpenedBy(e, p)
	rec.Status = Requested
	s.open(&rec)
}

// foldAdopted opens an action of another journal. One that this journal's own
// mirror knows more of than the journal, which lost its newest events, goes on
// as the mirror has it.
func (s *State) foldAdopted(e journal.Event, p *journal.ActionAdopted) {
	rec := p.Record
	known := s.Actions[rec.ID] != nil && p.JournalID != s.Journal.ID
	if rec.ID == "" || (e.Action != "" && e.Action != rec.ID) || rec.Ended != nil || known {
		s.problem(e, "the adopted action %q has ended, has another id than the event or is open already", rec.ID)
		return
	}
	rec = rec.Adopted(e)
	rec.Status = statusOf(&rec)
	s.open(&rec)
	countAnew(&rec, e.Time)
	subject := rec.Subject
	switch {
	case subject.Kind != "Node" || subject.UID == "" || s.Nodes[subject.UID] != nil:
	case journal.IsTraced(subject.UID):
		s.addTraced(e, subject)
	default:
		s.addNode(subject, Unknown, e.Time)
	}
}

// open adds the action and ties the pods it shall free to it.
func (s *State) open(rec *journal.ActionRecord) {
	s.Actions[rec.ID] = rec
	n := s.Nodes[rec.Subject.UID]
	if n == nil || rec.Kind != journal.ActionClearNode {
		return
	}
	for _, ref := range rec.Request.Pods {
		if pod := n.Pods[ref.UID]; pod != nil {
			pod.Action, pod.Outcome = rec.ID, ""
		}
	}
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

// close forgets an action that has ended, but for what its node keeps of it.
func (s *State) close(e journal.Event, rec *journal.ActionRecord) {
	p := rec.Ended
	delete(s.Actions, rec.ID)
	delete(s.cached().shared, rec.ID)
	n := s.Nodes[rec.Subject.UID]
	if n != nil {
		n.noteVain(e, rec, p)
		n.forgetOutlived(rec.ID)
	}
	if s.obeys(rec, RuleCooldown) && startsCooldown(rec, p.Outcome) {
		s.EndedAt[rec.Kind] = e.Time
	}
	switch rec.Kind {
	case journal.ActionPurgeNode:
		s.nodesChanged()
		if n != nil && !n.purged() {
			n.LastPurge = &EndedPurge{Action: rec.ID, Outcome: p.Outcome, Seq: e.Seq}
		}
	case journal.ActionClearNode:
		if n != nil {
			n.endClear(rec, p.Outcome)
		}
	}
}

// startsCooldown: an action does, unless it ended before it did anything.
func startsCooldown(rec *journal.ActionRecord, outcome journal.Outcome) bool {
	stopped := outcome == journal.OutcomeCancelled || outcome == journal.OutcomeAbandoned
	return !stopped || len(rec.Steps) > 0
}

// endClear notes at the pods how their action ended. Those of an abandoned one
// are free again: the node came back, and if it is lost anew they count anew.
func (n *Node) endClear(rec *journal.ActionRecord, outcome journal.Outcome) {
	for _, pod := range n.Pods {
		switch {
		case pod.Action != rec.ID:
		case outcome == journal.OutcomeAbandoned:
			pod.Action = ""
		default:
			pod.Outcome = outcome
		}
	}
}
