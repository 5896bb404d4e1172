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

// compare looks whether a mirror knows newer events of this journal than its
// file has: because an older copy was put back, because the disk lost what it
// had confirmed, or because somebody else goes on with a copy. That is recorded,
// with what was open then, and begins safe mode. The error then wraps
// [mirror.ErrOutdated], and the mirror must stay as it is: it is the only record
// of what was lost.
func (r *Ring) compare(ctx context.Context, content mirror.Content) error {
	if content.JournalID != r.journalID || r.ofOtherCluster(content) {
		return nil
	}
	var result error
	err := r.do(ctx, func(s *fsm.State) {
		if result = r.catchUp(ctx); result == nil {
			result = r.compareNow(ctx, s, content)
		}
	})
	return errors.Join(err, result)
}

func (r *Ring) compareNow(ctx context.Context, s *fsm.State, own mirror.Content) error {
	there, err := journal.Contains(ctx, r.cfg.Store, own.At)
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
	return fmt.Errorf("%w: the mirror, written %s, knows of event %d; it is left as it is until \"ekco journal accept\"",
		mirror.ErrOutdated, own.WrittenAt.Format(time.RFC3339), own.At.Seq)
}

// recordOutdated writes down, as one, that events are lost and what the mirror
// says to be open.
func (r *Ring) recordOutdated(ctx context.Context, s *fsm.State, own mirror.Content) error {
	kept := keptBefore(s, own.At)
	adopted, err := r.adoption(ctx, s, own, kept, mirror.Lost(kept))
	if err != nil {
		return err
	}
	drafts := append([]journal.Draft{{
		Type: journal.TypeJournalOutdated, Subject: journal.JournalSubject, Actor: Actor,
		Payload: journal.JournalOutdated{LastSeq: kept, Mirrored: own.At, MirroredAt: own.WrittenAt},
	}}, adopted...)
	if _, err := r.store.Append(ctx, drafts...); err != nil {
		return err
	}
	r.log.Error("the journal lost its newest events: EKCO observes and explains, and acts on nothing until \"ekco journal accept\"",
		"mirrored", own.At.Seq, "mirrored_at", own.WrittenAt, "kept", kept)
	return r.catchUp(ctx)
}

// keptBefore is the last event that the journal has in common with one that came
// to the lost position; 0 if nobody knows.
func keptBefore(s *fsm.State, lost journal.Position) uint64 {
	switch salvaged := s.Journal.Salvaged; {
	case salvaged != nil && salvaged.LastSeq < lost.Seq:
		return salvaged.LastSeq
	case s.Seq < lost.Seq:
		return s.Seq
	}
	return 0
}
