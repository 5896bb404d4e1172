package fsm

import (
	"fmt"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Pause drafts a pause of the named thing, or of everything when the name is empty.
// It ends by itself after the given time; 0 means never. A pause that is in
// force already is replaced. It returns an error for a name that
// the journal does not know.
func Pause(s *State, now time.Time, name, reason string, after time.Duration, actor string) ([]journal.Draft, error) {
	if after < 0 {
		return nil, fmt.Errorf("pause for %s: want a time that is not negative", after)
	}
	if err := s.unknown(name); err != nil {
		return nil, err
	}
	payload := journal.PauseSet{Reason: reason}
	if after > 0 {
		payload.Until = now.Add(after).UTC()
	}
	return []journal.Draft{{
		Type: journal.TypePauseSet, Subject: pauseSubject(s, name), Actor: actor, Payload: payload,
	}}, nil
}

// Resume drafts the end of the pause of the named thing, or of the pause of
// everything. It returns [ErrNotPaused] when there is none.
func Resume(s *State, name, reason, actor string) ([]journal.Draft, error) {
	pause, paused := s.Pauses[name]
	if !paused {
		return nil, s.notPaused(name)
	}
	return []journal.Draft{{
		Type: journal.TypePauseCleared, Subject: pauseSubject(s, name), Cause: pause.Seq, Actor: actor,
		Payload: journal.PauseCleared{Reason: reason},
	}}, nil
}

// notPaused is why there is no pause to end: also a name that nothing has any more
// can be paused, see [pauseKey].
func (s *State) notPaused(name string) error {
	if name == "" {
		return fmt.Errorf("resume EKCO: %w%s", ErrNotPaused, pausedNames(s))
	}
	if err := s.unknown(name); err != nil {
		return err
	}
	return fmt.Errorf("resume %s %s: %w%s", s.named(name).Machine(), name, ErrNotPaused, pausedNames(s))
}

func pausedNames(s *State) string {
	if len(s.Pauses) == 0 {
		return "; nothing is"
	}
	text := "; paused:"
	for _, key := range sortedKeys(s.Pauses) {
		if key == "" {
			key = "everything"
		}
		text += " " + key
	}
	return text
}

// pauseSubject is the reverse of pauseKey. Of a thing that is no longer known, the
// first machine's kind of subject is as good as any.
func pauseSubject(s *State, name string) journal.Subject {
	if name == "" {
		return journal.ClusterSubject
	}
	if t := s.named(name); t != nil {
		return t.Subject
	}
	for _, capability := range s.cache.capabilities {
		if pausable, ok := capability.Machine.(Pausable); ok {
			return pausable.Nobody(name)
		}
	}
	return journal.Subject{Kind: "Thing", Name: name}
}

// named returns the thing that a name means, or nil.
func (s *State) named(name string) *Thing {
	for _, capability := range s.cache.capabilities {
		if pausable, ok := capability.Machine.(Pausable); ok {
			if t := pausable.Meant(s, name); t != nil {
				return t
			}
		}
	}
	return nil
}

// unknown returns the error for a name that nothing has that could be paused; nil for
// "", which means everything.
func (s *State) unknown(name string) error {
	if name == "" || s.named(name) != nil {
		return nil
	}
	for _, capability := range s.cache.capabilities {
		if pausable, ok := capability.Machine.(Pausable); ok {
			return pausable.Unknown(s, name)
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknown, name)
}

// Retry drafts a new retry budget for the open action, to be used at once. It
// returns a *[RefusedError] for an action that is being cancelled, unless it has
// something to take back, or cannot be read, and [ErrNoSuchAction] when it is not open.
func Retry(s *State, action, reason, actor string) ([]journal.Draft, error) {
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
		Payload: journal.ActionRetried{Reason: reason},
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
		return nil, fmt.Errorf("cancel %s: %w; it can only be finished, \"ekco retry %s\" gives it a new budget", action, ErrPastNoReturn, action)
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
