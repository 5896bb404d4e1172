package ring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// compareWithMirror checks whether the mirror has newer events of this journal than the journal's file, or is from
// another journal of an operator on this machine. Possible causes are a restored older copy, a disk that lost confirmed
// writes, another EKCO with a copy of the file, and a deleted or replaced file. If so, compareWithMirror records the
// loss and the open actions of the mirror, and safe mode begins. The returned error wraps [mirror.ErrOutdated]: the
// mirror must stay unchanged, because only the mirror has the lost events.
func (r *Ring) compareWithMirror(ctx context.Context, content mirror.Content) error {
	if content.JournalID != r.journalID && !r.wroteHere(content) || r.ofOtherCluster(content) {
		return nil
	}
	var result error
	err := r.do(ctx, func(s *fsm.State) {
		if result = r.foldNewEvents(ctx); result == nil {
			result = r.compareNow(ctx, s, content)
		}
	})
	return errors.Join(err, result)
}

// wroteHere reports whether an operator on this machine wrote the mirror last. A command may use a journal of its own.
func (r *Ring) wroteHere(content mirror.Content) bool {
	return content.Host != "" && content.Host == r.cfg.Identity.Host && !r.cfg.forCommand()
}

func (r *Ring) compareNow(ctx context.Context, s *fsm.State, own mirror.Content) error {
	there, err := journal.Contains(ctx, r.cfg.Store, own.At)
	there = there && own.JournalID == r.journalID
	switch {
	case err != nil:
		return fmt.Errorf("compare the journal with its mirror: %w", err)
	case there, own.At == s.Journal.Accepted:
		return nil
	case s.Journal.Outdated == nil || s.Journal.Outdated.Mirrored != own.At:
		if err := r.recordOutdated(ctx, s, own); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the mirror of %s has event %d, which the journal lacks; EKCO leaves it unchanged until \"ekco journal accept\"",
		mirror.ErrOutdated, own.WrittenAt.Format(time.RFC3339), own.At.Seq)
}

// recordOutdated records the loss of events and the open actions of the mirror in one append.
func (r *Ring) recordOutdated(ctx context.Context, s *fsm.State, own mirror.Content) error {
	lost := journal.JournalOutdated{LastSeq: keptBefore(s, own.At), Mirrored: own.At, MirroredAt: own.WrittenAt}
	message := "the journal lost its newest events"
	if own.JournalID != r.journalID {
		lost.Gone, lost.LastSeq = own.JournalID, 0
		message = "the journal that EKCO wrote on this machine is gone"
	}
	adopted, err := r.adoption(ctx, s, own, mirror.Lost(lost.LastSeq))
	if err != nil {
		return err
	}
	drafts := append([]journal.Draft{{
		Type: journal.TypeJournalOutdated, Subject: journal.JournalSubject, Actor: Actor,
		Payload: lost,
	}}, adopted...)
	if _, err := r.store.Append(ctx, drafts...); err != nil {
		return err
	}
	r.log.Error(message+": EKCO only observes and explains until \"ekco journal accept\"",
		"journal", own.JournalID, "mirrored", own.At.Seq, "mirrored_at", own.WrittenAt, "kept", lost.LastSeq)
	return r.foldNewEvents(ctx)
}

// keptBefore returns the number of the last event that the journal still has before the lost position, or 0 if unknown.
func keptBefore(s *fsm.State, lost journal.Position) uint64 {
	switch salvaged := s.Journal.Salvaged; {
	case salvaged != nil && salvaged.LastSeq < lost.Seq:
		return salvaged.LastSeq
	case s.Seq < lost.Seq:
		return s.Seq
	}
	return 0
}
