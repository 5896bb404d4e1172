package fsm

import (
	"fmt"
	"maps"

	"github.com/replicatedhq/ekco/journal"
)

// Retry drafts a new retry budget for the open action, to be used at once. It
// returns a *[RefusedError] for an action that is being cancelled, unless it has
// something to take back, or cannot be read, and [ErrNoSuchAction] when it is not open.
func Retry(s *State, action, reason, actor string) ([]journal.Draft, error) {
	return retry(s, action, actor, journal.ActionRetried{Reason: reason})
}

// RetryPast is [Retry] that also goes past what holds the action now, as far as that may
// be forced. Where nothing does it is Retry.
func RetryPast(s *State, action, reason, actor string) ([]journal.Draft, error) {
	return retry(s, action, actor, journal.ActionRetried{Reason: reason, Force: true})
}

func retry(s *State, action, actor string, retried journal.ActionRetried) ([]journal.Draft, error) {
	rec, err := s.openAction("retry", action)
	if err != nil {
		return nil, err
	}
	switch {
	case rec.Cancelling != nil && !rec.Undoing():
		return nil, &RefusedError{Rule: RuleCancelling, Reason: action + " is being cancelled: " + rec.Cancelling.Reason}
	case rec.Unreadable != "":
		return nil, &RefusedError{Rule: RuleUnreadable, Reason: UnreadableReason(rec)}
	}
	return []journal.Draft{{
		Type: journal.TypeActionRetried, Subject: rec.Subject, Action: rec.ID, Cause: rec.LastSeq, Actor: actor,
		Payload: retried,
	}}, nil
}

// Cancel drafts the word to an open action to stop. There is nothing to draft
// when it is being cancelled already. It returns [ErrPastNoReturn] when the
// action goes only forward.
func Cancel(s *State, action, reason, actor string) ([]journal.Draft, error) {
	rec, err := s.openAction("cancel", action)
	switch {
	case err != nil:
		return nil, err
	case rec.PastNoReturn:
		return nil, fmt.Errorf("cancel %s: %w; it can only be finished, \"ekco retry %s\" tries again what failed or waits", action, ErrPastNoReturn, action)
	case rec.Cancelling != nil:
		return nil, nil
	}
	if reason == "" {
		reason = "cancelled by " + actor
	}
	return []journal.Draft{{
		Type: journal.TypeActionCancelling, Subject: rec.Subject, Action: rec.ID, Cause: rec.LastSeq, Actor: actor,
		Payload: journal.ActionCancelling{Reason: reason},
	}}, nil
}

func (s *State) openAction(verb, id string) (*journal.ActionRecord, error) {
	if rec := s.Actions[id]; rec != nil {
		return rec, nil
	}
	return nil, fmt.Errorf("%s %q: %w%s", verb, id, ErrNoSuchAction, DidYouMean(Near(id, maps.Keys(s.Actions))))
}

// Accept drafts the end of safe mode. It returns [ErrNotInSafeMode] when EKCO
// is not in it.
func Accept(s *State, reason, actor string) ([]journal.Draft, error) {
	if !s.Journal.SafeMode() {
		return nil, fmt.Errorf("accept the journal: %w; nothing is to be accepted", ErrNotInSafeMode)
	}
	return []journal.Draft{{
		Type: journal.TypeJournalAccepted, Subject: journal.JournalSubject, Actor: actor,
		Payload: journal.JournalAccepted{Reason: reason},
	}}, nil
}
