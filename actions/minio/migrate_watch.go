package minio

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/parallel"
)

// look is what is looked at again and again while something takes long. An error of it ends
// that.
type look struct {
	every time.Duration
	at    func(context.Context) error
}

// watched does something for as long as the looks let it. When one of them ends it, the
// error is that one's.
func watched(ctx context.Context, do func(context.Context) error, looks ...look) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var looking parallel.Group
	for _, l := range looks {
		looking.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(l.every):
				}
				if err := l.at(ctx); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	var err error
	caught := parallel.Catch(func() { err = do(ctx) })
	cause := context.Cause(ctx)
	stop(nil)
	looking.Wait().Raise()
	caught.Raise()
	if err != nil && cause != nil {
		return cause
	}
	return err
}

// serviceEvery is how often is looked whether the Service still leads to the single MinIO
// while nothing is changed: whoever has it lead elsewhere works on MinIO.
const serviceEvery = 3 * time.Second

// watchService ends what takes long once the Service leads elsewhere, or did for a moment. That it
// cannot be read for a while ends nothing that changes nothing.
func (s sides) watchService() look {
	return look{serviceEvery, func(ctx context.Context) error {
		err := s.target.service.open(ctx, 0)
		if isElsewhere(err) {
			return err
		}
		return nil
	}}
}

// policyEvery is how often policy is asked while something takes long: somebody may pause it.
const policyEvery = 30 * time.Second

// watchPolicy ends what takes long once it may not go on.
func watchPolicy(step actions.StepContext) look { return look{policyEvery, step.CheckPolicy} }

// isElsewhere reports whether an error says that the Service leads where nothing is copied, or did.
func isElsewhere(err error) bool {
	_, elsewhere := errors.AsType[elsewhereError](err)
	return elsewhere || errors.Is(err, errServes) || errors.Is(err, errTouched)
}

// waiting makes of what only others can change something that is waited for: it is no
// failure, and the preflights, which come next, hold it for its reason.
func waiting(err error) error {
	if _, full := errors.AsType[noRoomError](err); full || isElsewhere(err) || errors.Is(err, errAside) {
		return &actions.UnfinishedError{Left: err.Error(), Waits: true}
	}
	return err
}
