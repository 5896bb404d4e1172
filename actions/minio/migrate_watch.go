package minio

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/parallel"
)

// watch is a check that is repeated during a long operation. An error of the check ends the operation.
type watch struct {
	every time.Duration
	check func(context.Context) error
}

// runWatched runs do and the checks. If a check fails, it stops do and returns the error of the check.
func runWatched(ctx context.Context, do func(context.Context) error, watches ...watch) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running parallel.Group
	for _, w := range watches {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(w.every):
				}
				if err := w.check(ctx); err != nil {
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
	running.Wait().Raise()
	caught.Raise()
	if err != nil && cause != nil {
		return cause
	}
	return err
}

// serviceInterval is how often EKCO reads the Service during an operation that changes nothing.
const serviceInterval = 3 * time.Second

// watchService ends an operation if the Service selects other pods now, or did for a moment. A failed read does not end
// the operation, because the operation changes nothing.
func (s sides) watchService() watch {
	return watch{serviceInterval, func(ctx context.Context) error {
		err := s.target.service.check(ctx, 0)
		if isSelectedElsewhere(err) {
			return err
		}
		return nil
	}}
}

// policyInterval is how often EKCO checks its policy during a long operation: a person may pause EKCO.
const policyInterval = 30 * time.Second

// watchPolicy ends an operation when policy no longer allows it.
func watchPolicy(step actions.StepContext) watch { return watch{policyInterval, step.CheckPolicy} }

// isSelectedElsewhere reports whether an error says that the Service selects a MinIO to which EKCO does not copy, or
// selected it for a moment.
func isSelectedElsewhere(err error) bool {
	_, elsewhere := errors.AsType[elsewhereError](err)
	return elsewhere || errors.Is(err, errServes) || errors.Is(err, errTouched)
}

// asWait turns an error into a wait if only a person or another program can resolve it. A wait is no failure, and the
// preflights then hold the step with the reason.
func asWait(err error) error {
	if _, full := errors.AsType[noRoomError](err); full || isSelectedElsewhere(err) || errors.Is(err, errAside) {
		return &actions.UnfinishedError{Left: err.Error(), Waits: true}
	}
	return err
}
