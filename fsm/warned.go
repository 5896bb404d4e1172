package fsm

import (
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// Warning is one that somebody has gone past.
type Warning struct {
	Preflight string `json:"preflight"`
	Text      string `json:"text"`
	Actor     string `json:"actor"`
}

// maxWarnings is how many warnings of one open action are remembered.
const maxWarnings = 32

func (s *State) foldWarned(e journal.Event, p *journal.ActionWarned) {
	warning := Warning{Preflight: p.Preflight, Text: p.Warning, Actor: e.Actor}
	known := s.Warnings[e.Action]
	if slices.Contains(known, warning) {
		return
	}
	if s.Warnings == nil {
		s.Warnings = map[string][]Warning{}
	}
	s.Warnings[e.Action] = append(known[max(0, len(known)+1-maxWarnings):], warning)
}

// warned records the warnings of the request that the same person has not gone
// past before, as somebody does who asks for an open purge again.
func (s *State) warned(n *Node, action string, request Request) []journal.Draft {
	var events []journal.Draft
	for _, warning := range request.Warned {
		if slices.Contains(s.Warnings[action], Warning{Preflight: warning.Preflight, Text: warning.Warning, Actor: request.Actor}) {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionWarned, Subject: n.Subject(), Action: action, Actor: request.Actor, Payload: warning,
		})
	}
	return events
}
