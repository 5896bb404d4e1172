package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// fold reports whether the event is about the journal itself.
func (s *JournalState) fold(e journal.Event, payload journal.Payload) bool {
	switch p := payload.(type) {
	case *journal.JournalCreated:
		s.ID, s.Mark = p.JournalID, mark(p.JournalID)
	case *journal.JournalReplaced:
		s.Replaced, s.ReplacedAt = p, e.Time
	case *journal.JournalSalvaged:
		s.Salvaged, s.SalvagedAt = p, e.Time
		s.Mark = mark(e.Hash.String())
	case *journal.JournalOutdated:
		s.Outdated, s.OutdatedAt = p, e.Time
		s.Mark = mark(e.Hash.String())
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

// noteLoss notes the first event that reports a loss, and since when events are missing. That time is known only if the
// event before, with number last, is the last one that was kept: a file that continued without the lost events has
// later events.
func (s *JournalState) noteLoss(d journal.Decoded, last uint64, at time.Time) {
	known := true
	switch p := d.Body.(type) {
	case *journal.JournalSalvaged:
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

// mark shortens an identifier of a journal to what people can read out.
func mark(id string) string { return id[:min(len(id), 4)] }
