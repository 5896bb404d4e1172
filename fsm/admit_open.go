package fsm

import (
	"fmt"

	"github.com/replicatedhq/ekco/journal"
)

// OpenOf returns the open action of this kind about the thing with this key, or nil. It prefers an action that is not
// being cancelled, and then the one that was requested first.
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

// OpenAnswer is the machine's part of the answer to a request for an action that is already open.
type OpenAnswer struct {
	// Note is added to the message, after the name of the actor who requested the open action.
	Note string
	// RetryReason is the reason to record in action.retried, if the open action has stalled and is retried.
	RetryReason string
	// Replace admits a new action that replaces the open one.
	Replace func() (Admission, error)
}

// cancelAdvice returns the advice to cancel the open action, or "" if it is past its point of no return.
func cancelAdvice(open *journal.ActionRecord) string {
	if open.PastNoReturn {
		return ""
	}
	return fmt.Sprintf(", or run \"ekco cancel %s\" first", open.ID)
}

// AdmitOpen answers a request for an action that is already open. The person joins the open action or replaces it, or
// the request is refused.
func (w *World) AdmitOpen(t *Thing, open *journal.ActionRecord, request Request, own OpenAnswer) (Admission, error) {
	dryRun := request.DryRun || w.Policy.DryRun
	switch {
	case !dryRun && canReplace(open):
		return replaceOpen(open, request, own.Replace)
	case open.Unreadable != "":
		return Refuse(t, request, RuleUnreadable, UnreadableReason(open))
	case open.Cancelling != nil:
		return Refuse(t, request, RuleCancelling, open.ID+" is being cancelled; ask again when it has ended")
	case open.Request.DryRun != dryRun:
		return Refuse(t, request, RuleOneAtATime, fmt.Sprintf(
			"%s is open and is %s; ask again when it has ended%s", open.ID, dryRunWord(open.Request.DryRun), cancelAdvice(open)))
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
	// The event action.retried already names the actor. action.joined is still needed if EKCO requested the action,
	// because it makes the action count as a person's.
	if request.Actor != open.RequestedBy && (open.Stalled == nil || !open.ByPerson()) {
		answer.Events = append(answer.Events, journal.Draft{
			Type: journal.TypeActionJoined, Subject: open.Subject, Action: open.ID, Cause: open.LastSeq, Actor: request.Actor,
			Payload: journal.ActionJoined{Reason: request.Reason},
		})
	}
	answer.Events = append(answer.Events, w.Warned(t.Subject, open.ID, request.Actor, request.Warned)...)
	return answer, nil
}

// canReplace reports whether a person's request replaces the open action. It does if EKCO requested that action itself
// and a preflight holds it before its first step. For a person's action the same preflight may be only a warning.
func canReplace(open *journal.ActionRecord) bool {
	return !open.Request.Manual && open.Status == Held && len(open.Steps) == 0 && open.Unreadable == ""
}

func replaceOpen(open *journal.ActionRecord, request Request, admitNew func() (Admission, error)) (Admission, error) {
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
