package fsm

import "github.com/replicatedhq/ekco/journal"

// Warned drafts the warnings that the same person has not seen for the open action before. A person who requests an
// open action again has seen some.
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
