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
		case errors.Is(err, mirror.ErrOtherFormat):
			r.log.Error("another EKCO is needed to finish what it began; nothing irreversible is started", "error", err)
			return nil
		case err != nil:
			r.log.Warn("cannot read the mirror of open actions; going on without it", "error", err)
			return nil
		case r.ofOtherCluster(content):
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

func (r *Ring) adoptFrom(ctx context.Context, content mirror.Content, options ...mirror.AdoptOption) error {
	var own []journal.ActionRecord
	err := r.do(ctx, func(s *fsm.State) {
		own = s.OpenActions()
		if salvaged := s.Journal.Salvaged; salvaged != nil {
			options = append(options, mirror.Lost(salvaged.LastSeq))
		}
	})
	if err != nil {
		return err
	}
	drafts, err := r.adoption(ctx, content, own, options...)
	if err != nil || len(drafts) == 0 {
		return err
	}
	r.log.Info("taking over open actions from the mirror", "events", len(drafts))
	_, err = r.store.Append(ctx, drafts...)
	return err
}

// adoption says which events make this journal go on with what a mirror holds.
func (r *Ring) adoption(ctx context.Context, content mirror.Content, own []journal.ActionRecord, options ...mirror.AdoptOption) ([]journal.Draft, error) {
	ended, err := mirror.AlreadyEnded(ctx, r.cfg.Store, content)
	if err != nil {
		return nil, err
	}
	options = append(options, mirror.EndedHere(ended...))
	return mirror.Adopt(content, own, r.journalID, r.cfg.Identity.ClusterUID, options...)
}

// takeOver merges what an EKCO that has gone quiet had open.
func (r *Ring) takeOver(ctx context.Context, other mirror.Content) error {
	if err := r.adoptFrom(ctx, other, mirror.UnderWay()); err != nil {
		return err
	}
	return r.updateMirror(ctx)
}
