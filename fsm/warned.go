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

// Warned records the warnings that the same person has not gone past before, as
// somebody does who asks for an open action again.
func (s *State) Warned(subject journal.Subject, action, actor string, warnings []journal.ActionWarned) []journal.Draft {
	var events []journal.Draft
	for _, warning := range warnings {
		if slices.Contains(s.Warnings[action], Warning{Preflight: warning.Preflight, Text: warning.Warning, Actor: actor}) {
			continue
		}
		events = append(events, journal.Draft{
			Type: journal.TypeActionWarned, Subject: subject, Action: action, Actor: actor, Payload: warning,
		})
	}
	return events
}
