package minio

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/parallel"
)

// watch is a check that is repeated during a long operation. Its error ends the operation.
type watch struct {
	every time.Duration
	at    func(context.Context) error
}

// watched runs do until one of the checks fails. It then returns that error.
func watched(ctx context.Context, do func(context.Context) error, watches ...watch) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var looking parallel.Group
	for _, l := range watches {
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

// serviceInterval is how often EKCO checks whether the Service still selects standalone MinIO during an operation that
// changes nothing.
const serviceInterval = 3 * time.Second

// watchService ends an operation once the Service selects other pods, or did for a moment. A failed read does not end
// an operation that changes nothing.
func (s sides) watchService() watch {
	return watch{serviceInterval, func(ctx context.Context) error {
		err := s.target.service.open(ctx, 0)
		if isElsewhere(err) {
			return err
		}
		return nil
	}}
}

// policyInterval is how often policy is checked during a long operation: a person may pause it.
const policyInterval = 30 * time.Second

// watchPolicy ends an operation that policy no longer allows.
func watchPolicy(step actions.StepContext) watch { return watch{policyInterval, step.CheckPolicy} }

// isElsewhere reports whether an error says that the Service selects, or did select, a MinIO for which nothing is
// copied.
func isElsewhere(err error) bool {
	_, elsewhere := errors.AsType[elsewhereError](err)
	return elsewhere || errors.Is(err, errServes) || errors.Is(err, errTouched)
}

// waiting turns an error that only a person or another program can resolve into a wait: it is no failure, and the
// preflights, which come next, hold for its reason.
func waiting(err error) error {
	if _, full := errors.AsType[noRoomError](err); full || isElsewhere(err) || errors.Is(err, errAside) {
		return &actions.UnfinishedError{Left: err.Error(), Waits: true}
	}
	return err
}
