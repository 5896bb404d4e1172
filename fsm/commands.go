package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Retry returns the draft that gives an open action a new retry budget and makes its next attempt due at once. It
// returns [ErrNoSuchAction] if the action is not open, and a *[RefusedError] if the action is unreadable, or is being
// cancelled and has nothing to undo.
func Retry(s *State, action, reason, actor string) ([]journal.Draft, error) {
	return retry(s, action, actor, journal.ActionRetried{Reason: reason})
}

// RetryPast is [Retry], and also overrides the present holds of the action, if they can be overridden. To override a
// hold whose reason is a list, the person must pass the key of that list, which shows that they have read it.
func RetryPast(s *State, action, list, reason, actor string) ([]journal.Draft, error) {
	return retry(s, action, actor, journal.ActionRetried{Reason: reason, Force: true, List: list})
}

// requireList returns a *[RefusedError] if the person did not name the list that holds the action now.
func requireList(rec *journal.ActionRecord, list string) error {
	holds := ""
	for _, step := range slices.Sorted(maps.Keys(rec.Holds)) {
		key := rec.Holds[step].ListKey()
		if key != "" && key == list {
			return nil
		}
		holds = cmp.Or(holds, key)
	}
	switch {
	case holds != "":
		return &RefusedError{Rule: RuleListed, Reason: fmt.Sprintf("%s waits because of a list; read the list with \"ekco status\", then run \"ekco retry --force --list %s %s\"", rec.ID, holds, rec.ID)}
	case list != "":
		return &RefusedError{Rule: RuleListed, Reason: fmt.Sprintf("list %s does not hold %s now; \"ekco status\" shows the present hold", list, rec.ID)}
	}
	return nil
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
	if retried.Force {
		if err := requireList(rec, retried.List); err != nil {
			return nil, err
		}
	}
	return []journal.Draft{{
		Type: journal.TypeActionRetried, Subject: rec.Subject, Action: rec.ID, Cause: rec.LastSeq, Actor: actor,
		Payload: retried,
	}}, nil
}

// Cancel returns the draft that cancels an open action, or nil if the action is already being cancelled. It returns
// [ErrPastNoReturn] if the action can no longer be cancelled.
func Cancel(s *State, action, reason, actor string) ([]journal.Draft, error) {
	rec, err := s.openAction("cancel", action)
	switch {
	case err != nil:
		return nil, err
	case rec.PastNoReturn && Waits(rec):
		return nil, fmt.Errorf("cancel %s: %w; it can only be finished: \"ekco retry %s\" retries the steps that failed or wait", action, ErrPastNoReturn, action)
	case rec.PastNoReturn:
		return nil, fmt.Errorf("cancel %s: %w; it runs, and cannot be stopped: \"ekco history --action %s --follow\" shows its end", action, ErrPastNoReturn, action)
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

// Waits reports whether an open action waits, or whether one of its steps failed, so that a retry has an effect.
func Waits(rec *journal.ActionRecord) bool {
	if len(rec.Holds) > 0 || rec.Stalled != nil || rec.Cancelling != nil || rec.Unreadable != "" {
		return true
	}
	for _, step := range rec.Steps {
		if !step.NextTry.IsZero() {
			return true
		}
	}
	return false
}

func (s *State) openAction(verb, id string) (*journal.ActionRecord, error) {
	if rec := s.Actions[id]; rec != nil {
		return rec, nil
	}
	return nil, fmt.Errorf("%s %q: %w%s", verb, id, ErrNoSuchAction, DidYouMean(Near(id, maps.Keys(s.Actions))))
}

// Accept returns the draft that ends safe mode, or [ErrNotInSafeMode].
func Accept(s *State, reason, actor string) ([]journal.Draft, error) {
	if !s.Journal.SafeMode() {
		return nil, fmt.Errorf("accept the journal: %w; there is nothing to accept", ErrNotInSafeMode)
	}
	return []journal.Draft{{
		Type: journal.TypeJournalAccepted, Subject: journal.JournalSubject, Actor: actor,
		Payload: journal.JournalAccepted{Reason: reason},
	}}, nil
}
