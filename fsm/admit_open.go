package fsm

import (
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// OpenOf returns the open action of this kind about the thing with this key, or nil. It returns one that is being
// cancelled only if there is no other.
func (s *State) OpenOf(key string, kind journal.ActionKind) *journal.ActionRecord {
	var found *journal.ActionRecord
	for _, rec := range s.Actions {
		if rec.Kind != kind || Key(rec.Subject) != key {
			continue
		}
		better := found == nil || (found.Cancelling != nil && rec.Cancelling == nil) ||
			((found.Cancelling == nil) == (rec.Cancelling == nil) && RequestOrder(rec, found) < 0)
		if better {
			found = rec
		}
	}
	return found
}

// OpenAnswer is a machine's part of the answer to a request for an action that is open.
type OpenAnswer struct {
	// Note is added to the message that names who requested it.
	Note string
	// RetryReason is the recorded reason for a new retry budget, if the action had stalled.
	RetryReason string
	// Replace admits a new action that replaces the open one.
	Replace func() (Admission, error)
}

// orCancel is the advice to cancel the open action, "" past its point of no return.
func orCancel(open *journal.ActionRecord) string {
	if open.PastNoReturn {
		return ""
	}
	return fmt.Sprintf(", or run \"ekco cancel %s\" first", open.ID)
}

// AdmitOpen answers a request for what an open action already does.
func (w *World) AdmitOpen(t *Thing, open *journal.ActionRecord, request Request, own OpenAnswer) (Admission, error) {
	dryRun := request.DryRun || w.Policy.DryRun
	switch {
	case !dryRun && takesOver(open):
		return takeOver(open, request, own.Replace)
	case open.Unreadable != "":
		return Refuse(t, request, RuleUnreadable, UnreadableReason(open))
	case open.Cancelling != nil:
		return Refuse(t, request, RuleCancelling, open.ID+" is being cancelled; ask again when it has ended")
	case open.Request.DryRun != dryRun:
		return Refuse(t, request, RuleOneAtATime, fmt.Sprintf(
			"%s is open and is %s; ask again when it has ended%s", open.ID, dryRunWord(open.Request.DryRun), orCancel(open)))
	}
	answer := Admission{Action: open.ID, Resumed: true, Message: fmt.Sprintf("requested at %s by %s%s",
		Stamp(open.RequestedAt), open.RequestedBy, own.Note)}
	if open.Stalled != nil {
		answer.Message += "; it had stalled, and EKCO tries it again"
		answer.Events = append(answer.Events, journal.Draft{
			Type: journal.TypeActionRetried, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
			Payload: journal.ActionRetried{Reason: own.RetryReason},
		})
	}
	// The event of a retry names the actor, but a join also makes the action one by a person.
	if request.Actor != open.RequestedBy && (open.Stalled == nil || !open.ByPerson()) {
		answer.Events = append(answer.Events, journal.Draft{
			Type: journal.TypeActionJoined, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
			Payload: journal.ActionJoined{Reason: request.Reason},
		})
	}
	answer.Events = append(answer.Events, w.Warned(t.Subject, open.ID, request.Actor, request.Warned)...)
	return answer, nil
}

// takesOver reports whether a person's request replaces the open action: EKCO requested that one itself, policy holds
// it, and none of its steps has begun. Policy that holds EKCO need not hold a person.
func takesOver(open *journal.ActionRecord) bool {
	return !open.Request.Manual && open.Status == Held && len(open.Steps) == 0 && open.Unreadable == ""
}

func takeOver(open *journal.ActionRecord, request Request, admitNew func() (Admission, error)) (Admission, error) {
	answer, err := admitNew()
	if err != nil {
		return answer, err
	}
	cancel := journal.Draft{
		Type: journal.TypeActionCancelling, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
		Payload: journal.ActionCancelling{Reason: "replaced by " + answer.Action + ", requested by " + request.Actor},
	}
	answer.Events = append([]journal.Draft{cancel}, answer.Events...)
	answer.Message = answer.Action + " replaces " + open.ID + ", which was held"
	return answer, nil
}

func dryRunWord(dryRun bool) string {
	if dryRun {
		return "a dry run"
	}
	return "not a dry run"
}
