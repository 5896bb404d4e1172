package fsm

import "github.com/replicatedhq/ekco/journal"

// Warned returns the drafts for the warnings, except those that the open action already has with the same actor,
// because a person can request the same action twice.
func (s *State) Warned(subject journal.Subject, action, actor string, warnings []journal.ActionWarned) []journal.Draft {
	var open journal.ActionRecord
	if rec := s.Actions[action]; rec != nil {
		open = *rec
	}
	var events []journal.Draft
	for _, warning := range warnings {
		if open.HasWarned(actor, warning) {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionWarned, Subject: subject, Action: action, Actor: actor, Payload: warning,
		})
	}
	return events
}
