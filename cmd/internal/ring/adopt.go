package ring

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// consultMirror reads the mirror before the first decision. The mirror may know newer events of this journal than the
// file has, and the open actions of another EKCO.
func (r *Ring) consultMirror(ctx context.Context) error {
	return r.withRetries(ctx, "read the mirror of open actions", func(ctx context.Context) error {
		content, err := r.readMirror(ctx)
		switch {
		case errors.Is(err, kube.ErrNotFound):
			return nil
		case errors.Is(err, kube.ErrForbidden):
			r.log.Info("EKCO may not read the mirror of open actions; continuing without it", "error", err)
			return nil
		case errors.Is(err, kube.ErrUnavailable):
			return err
		case errors.Is(err, mirror.ErrIncomplete) && content.JournalID != r.journalID:
			r.log.Error("cannot take over the open actions of another EKCO, only its pauses; no irreversible step starts", "error", err)
			content.Actions, content.Ended = nil, nil
		case errors.Is(err, mirror.ErrIncomplete):
			r.log.Error("a part of this EKCO's mirror is lost", "error", err)
		case errors.Is(err, mirror.ErrOtherFormat):
			r.log.Error("only the EKCO that wrote the mirror can finish its actions; no irreversible step starts", "error", err)
			return nil
		case err != nil:
			r.log.Warn("cannot read the mirror of open actions; continuing without it", "error", err)
			return nil
		}
		if r.ofOtherCluster(content) {
			r.log.Warn("ignoring the mirror of open actions: it was copied from another cluster", "cluster", content.ClusterUID)
			return nil
		}
		err = r.compareWithMirror(ctx, content)
		switch {
		case errors.Is(err, mirror.ErrOutdated): // the loss is recorded, and EKCO is in safe mode
			return nil
		case err != nil || !r.mayAdopt():
			return err
		}
		return r.adoptFrom(ctx, content)
	})
}

// mayAdopt reports whether this ring continues open actions of another EKCO. A dry run and a ring for one command do
// not.
func (r *Ring) mayAdopt() bool { return !r.cfg.Policy.DryRun && !r.cfg.forCommand() }

// readMirror reads the mirror. A ring that adopts its content may then replace it.
func (r *Ring) readMirror(ctx context.Context) (mirror.Content, error) {
	if r.mayAdopt() {
		return r.mirror.Load(ctx)
	}
	return r.mirror.Read(ctx)
}

// ofOtherCluster reports whether the mirror was copied from another cluster. An unknown UID matches every cluster.
func (r *Ring) ofOtherCluster(content mirror.Content) bool {
	return content.ClusterUID != "" && r.cfg.Identity.ClusterUID != "" && content.ClusterUID != r.cfg.Identity.ClusterUID
}

// adoptFrom adopts the content of the mirror. It decides in the loop, so that no pause can end in between.
func (r *Ring) adoptFrom(ctx context.Context, content mirror.Content, options ...mirror.AdoptOption) error {
	var result error
	err := r.do(ctx, func(s *fsm.State) {
		if result = r.foldNewEvents(ctx); result != nil {
			return
		}
		if content.JournalID == r.journalID {
			if s.Journal.Salvaged == nil {
				return // this journal already has everything
			}
			options = append(options, mirror.Lost(s.Journal.Salvaged.LastSeq))
		}
		var drafts []journal.Draft
		if drafts, result = r.adoption(ctx, s, content, options...); result != nil || len(drafts) == 0 {
			return
		}
		r.log.Info("taking over the content of the mirror", "events", len(drafts), "journal", content.JournalID)
		_, result = r.store.Append(ctx, drafts...)
	})
	return errors.Join(err, result)
}

// adoption returns the events with which this journal adopts the content of a mirror.
func (r *Ring) adoption(ctx context.Context, s *fsm.State, content mirror.Content, options ...mirror.AdoptOption) ([]journal.Draft, error) {
	ended, err := mirror.AlreadyEnded(ctx, r.cfg.Store, content)
	if err != nil {
		return nil, err
	}
	kept, err := r.lastKeptEvent(ctx, s, content)
	if err != nil {
		return nil, err
	}
	options = append(options, mirror.EndedHere(ended...), mirror.Kept(kept))
	adopted, err := mirror.Adopt(content, s.OpenActions(), r.journalID, r.cfg.Identity.ClusterUID, options...)
	if err != nil {
		return nil, err
	}
	return fsm.TakeOver(s, fsm.Mirrored{
		Carried: content.Carried, Knew: content.Knew, Kept: kept,
		Adopted: journal.JournalAdopted{JournalID: content.JournalID, Mirrored: content.At, MirroredAt: content.WrittenAt},
	}, adopted), nil
}

// lastKeptEvent returns the number of the last event that this journal has not lost. It returns 0 if the journal is an
// older copy of the journal that the mirror's writer knew, because the copy may have other events with the same
// numbers.
func (r *Ring) lastKeptEvent(ctx context.Context, s *fsm.State, content mirror.Content) (uint64, error) {
	known, kept := content.CoveredAt[r.journalID], s.Seq
	if content.JournalID == r.journalID {
		known = content.At
	}
	if salvaged := s.Journal.Salvaged; salvaged != nil {
		kept = salvaged.LastSeq
		if kept < known.Seq {
			return kept, nil
		}
	}
	if known.Seq == 0 && content.Knew(r.journalID) > 0 {
		return 0, nil // an older EKCO wrote the mirror, without positions
	}
	there, err := journal.Contains(ctx, r.cfg.Store, known)
	if err != nil || !there {
		return 0, err
	}
	return kept, nil
}

// takeOver adopts the open actions of an EKCO that no longer writes its mirror.
func (r *Ring) takeOver(ctx context.Context, other mirror.Content) error {
	if err := r.adoptFrom(ctx, other, mirror.UnderWay()); err != nil {
		return err
	}
	return r.updateMirror(ctx)
}
