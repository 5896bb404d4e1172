package fsm

import "github.com/replicatedhq/ekco/journal"

// warned records the warnings of the request that the same person has not gone
// past before, as somebody does who asks for an open purge again.
func (s *State) warned(n *Node, action string, request Request) []journal.Draft {
	var open journal.ActionRecord
	if rec := s.Actions[action]; rec != nil {
		open = *rec
	}
	var events []journal.Draft
	for _, warning := range request.Warned {
		if open.HasWarned(request.Actor, warning) {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionWarned, Subject: n.Subject(), Action: action, Actor: request.Actor, Payload: warning,
		})
	}
	return events
}
