package fsm

import (
	"fmt"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Pause drafts a pause of the named node, or of everything when node is empty.
// It ends by itself after the given time; 0 means never. A pause that is in
// force already is replaced. It returns an *[UnknownNodeError] for a name that
// the journal does not know.
func Pause(s *State, now time.Time, node, reason string, after time.Duration, actor string) ([]journal.Draft, error) {
	if after < 0 {
		return nil, fmt.Errorf("pause for %s: want a time that is not negative", after)
	}
	if node != "" && len(s.NodeByName(node)) == 0 {
		return nil, s.unknownNode(node)
	}
	payload := journal.PauseSet{Reason: reason}
	if after > 0 {
		payload.Until = now.Add(after).UTC()
	}
	return []journal.Draft{{
		Type: journal.TypePauseSet, Subject: pauseSubject(s, node), Actor: actor, Payload: payload,
	}}, nil
}

// Resume drafts the end of the pause of the named node, or of the pause of
// everything. It returns [ErrNotPaused] when there is none.
func Resume(s *State, node, reason, actor string) ([]journal.Draft, error) {
	pause, paused := s.Pauses[node]
	switch {
	case paused:
	case node == "":
		return nil, fmt.Errorf("resume EKCO: %w%s", ErrNotPaused, pausedNodes(s))
	case len(s.NodeByName(node)) == 0:
		return nil, s.unknownNode(node)
	default:
		return nil, fmt.Errorf("resume node %s: %w%s", node, ErrNotPaused, pausedNodes(s))
	}
	return []journal.Draft{{
		Type: journal.TypePauseCleared, Subject: pauseSubject(s, node), Cause: pause.Seq, Actor: actor,
		Payload: journal.PauseCleared{Reason: reason},
	}}, nil
}

func pausedNodes(s *State) string {
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

// pauseSubject is the reverse of pauseKey.
func pauseSubject(s *State, node string) journal.Subject {
	if node == "" {
		return journal.ClusterSubject
	}
	if nodes := s.NodeByName(node); len(nodes) > 0 {
		return nodes[0].Subject()
	}
	return journal.NodeSubject(node, "")
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
		return nil, &RefusedError{Rule: RuleUnreadable, Reason: unreadableReason(rec)}
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
	return nil, fmt.Errorf("%s %q: %w%s", verb, id, ErrNoSuchAction, didYouMean(Near(id, maps.Keys(s.Actions))))
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
