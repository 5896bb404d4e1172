package ring

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// consult looks at the mirror before anything is decided: whether it knows more
// of this journal than the file does, and what another EKCO had open.
func (r *Ring) consult(ctx context.Context) error {
	return r.patiently(ctx, "read the mirror of open actions", func(ctx context.Context) error {
		content, err := r.readMirror(ctx)
		switch {
		case errors.Is(err, kube.ErrNotFound):
			return nil
		case errors.Is(err, kube.ErrForbidden):
			r.log.Info("may not read the mirror of open actions; going on without it", "error", err)
			return nil
		case errors.Is(err, kube.ErrUnavailable):
			return err
		case errors.Is(err, mirror.ErrIncomplete) && content.JournalID != r.journalID:
			r.log.Error("what another EKCO had open is not taken over, only its pauses; nothing irreversible is started", "error", err)
			content.Actions, content.Ended = nil, nil
		case errors.Is(err, mirror.ErrIncomplete):
			r.log.Error("a part of the own mirror is lost", "error", err)
		case errors.Is(err, mirror.ErrOtherFormat):
			r.log.Error("another EKCO is needed to finish what it began; nothing irreversible is started", "error", err)
			return nil
		case err != nil:
			r.log.Warn("cannot read the mirror of open actions; going on without it", "error", err)
			return nil
		}
		if r.ofOtherCluster(content) {
			r.log.Warn("the mirror of open actions is not used: it is of another cluster, and was copied here", "cluster", content.ClusterUID)
			return nil
		}
		err = r.compare(ctx, content)
		switch {
		case errors.Is(err, mirror.ErrOutdated): // it is recorded, and EKCO in safe mode
			return nil
		case err != nil || !r.adopts():
			return err
		}
		return r.adoptFrom(ctx, content)
	})
}

// adopts says whether this ring goes on with what another EKCO had open. One
// that tries out, or works for one command, does not.
func (r *Ring) adopts() bool { return !r.cfg.Policy.DryRun && !r.cfg.forCommand() }

// readMirror reads the mirror, which a ring that adopts it may replace.
func (r *Ring) readMirror(ctx context.Context) (mirror.Content, error) {
	if r.adopts() {
		return r.mirror.Load(ctx)
	}
	return r.mirror.Read(ctx)
}

// ofOtherCluster reports whether a mirror was copied here from elsewhere. UIDs
// that are not known are taken to match.
func (r *Ring) ofOtherCluster(content mirror.Content) bool {
	return content.ClusterUID != "" && r.cfg.Identity.ClusterUID != "" && content.ClusterUID != r.cfg.Identity.ClusterUID
}

// adoptFrom takes over what the mirror holds. It decides in the loop, so that nobody ends a pause meanwhile.
func (r *Ring) adoptFrom(ctx context.Context, content mirror.Content, options ...mirror.AdoptOption) error {
	var result error
	err := r.do(ctx, func(s *fsm.State) {
		if result = r.catchUp(ctx); result != nil {
			return
		}
		kept, salvaged := s.Seq, s.Journal.Salvaged
		own := content.JournalID == r.journalID
		switch {
		case own && salvaged == nil:
			return // this journal has it all
		case salvaged != nil:
			kept = salvaged.LastSeq
		}
		if own {
			options = append(options, mirror.Lost(kept))
		}
		var drafts []journal.Draft
		if drafts, result = r.adoption(ctx, s, content, kept, options...); result != nil || len(drafts) == 0 {
			return
		}
		r.log.Info("taking over what the mirror holds", "events", len(drafts), "journal", content.JournalID)
		_, result = r.store.Append(ctx, drafts...)
	})
	return errors.Join(err, result)
}

// adoption says which events make this journal, which has not lost its events up to kept, go on with what
// a mirror holds.
func (r *Ring) adoption(ctx context.Context, s *fsm.State, content mirror.Content, kept uint64, options ...mirror.AdoptOption) ([]journal.Draft, error) {
	ended, err := mirror.AlreadyEnded(ctx, r.cfg.Store, content)
	if err != nil {
		return nil, err
	}
	options = append(options, mirror.EndedHere(ended...))
	adopted, err := mirror.Adopt(content, s.OpenActions(), r.journalID, r.cfg.Identity.ClusterUID, options...)
	if err != nil {
		return nil, err
	}
	return fsm.TakeOver(s, fsm.Mirrored{
		Carried: content.Carried, Knew: content.Knew(r.journalID), Kept: kept,
		Adopted: journal.JournalAdopted{JournalID: content.JournalID, Mirrored: content.At, MirroredAt: content.WrittenAt},
	}, adopted), nil
}

// takeOver merges what an EKCO that has gone quiet had open.
func (r *Ring) takeOver(ctx context.Context, other mirror.Content) error {
	if err := r.adoptFrom(ctx, other, mirror.UnderWay()); err != nil {
		return err
	}
	return r.updateMirror(ctx)
}
