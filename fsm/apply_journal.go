package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// fold folds an event about the journal itself, and reports whether the event is one.
func (s *JournalState) fold(e journal.Event, payload journal.Payload) bool {
	switch p := payload.(type) {
	case *journal.JournalCreated:
		s.ID, s.Mark = p.JournalID, shortID(p.JournalID)
	case *journal.JournalReplaced:
		s.Replaced, s.ReplacedAt = p, e.Time
	case *journal.JournalSalvaged:
		s.Salvaged, s.SalvagedAt = p, e.Time
		s.Mark = shortID(e.Hash.String())
	case *journal.JournalOutdated:
		s.Outdated, s.OutdatedAt = p, e.Time
		s.Mark = shortID(e.Hash.String())
	case *journal.JournalAccepted:
		if s.Outdated != nil {
			s.Accepted = s.Outdated.Mirrored
		}
		s.Salvaged, s.SalvagedAt = nil, time.Time{}
		s.Outdated, s.OutdatedAt = nil, time.Time{}
		s.LostFrom, s.LostSeq = time.Time{}, 0
	case *journal.JournalExported, *journal.JournalPruned, *journal.JournalImported: // no decision depends on these
	default:
		return false
	}
	return true
}

// noteLoss handles the first event that reports a loss, d. It sets LostSeq to the number of d. It sets LostFrom to at,
// the time of the event before d (number last), unless no event was kept, or an EKCO appended other events between the
// loss and d.
func (s *JournalState) noteLoss(d journal.Decoded, last uint64, at time.Time) {
	var known bool
	switch p := d.Body.(type) {
	case *journal.JournalSalvaged:
		known = p.Recovered > 0
	case *journal.JournalOutdated:
		known = p.LastSeq == last
	default:
		return
	}
	if s.SafeMode() {
		return
	}
	s.LostSeq = d.Seq
	if known {
		s.LostFrom = at
	}
}

// shortID returns the first 4 characters of a journal's id, which become part of the ids of actions.
func shortID(id string) string { return id[:min(len(id), 4)] }
