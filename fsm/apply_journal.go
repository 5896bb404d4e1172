package fsm

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// fold reports whether the event is one of the journal's own.
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
	case *journal.JournalExported, *journal.JournalPruned, *journal.JournalImported: // nothing that EKCO judges by
	default:
		return false
	}
	return true
}

// noteLoss keeps, with the first of the events that tell of a loss, where it is told and since
// when events are missing, if the last event before, at seq last, is the last that was kept. A
// file that went on without the lost ones has later events, whose times say nothing of that.
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

// mark shortens what tells journals apart to what people can read out.
func mark(id string) string { return id[:min(len(id), 4)] }
