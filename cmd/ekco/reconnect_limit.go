package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// reconnectLimit limits how fast and how long a client reconnects after its event stream ends: an operator that answers
// may still be unable to send events.
type reconnectLimit struct {
	// progress is the progress at the latest loss. reached is the time of the latest reconnect. since is the time of the
	// last progress.
	progress       uint64
	reached, since time.Time
}

// minWorkingStream is how long a stream must last to count as working.
const minWorkingStream = 10 * returnRetry

// await reconnects to an operator after a lost connection. progress is a number that grows with each event.
func (r *reconnectLimit) await(ctx context.Context, progress uint64, lost error, dial func(context.Context) (operator, error)) (operator, error) {
	if err := r.pauseOrGiveUp(ctx, progress, lost); err != nil {
		return nil, err
	}
	back, err := awaitOperator(ctx, dial)
	switch {
	case errors.Is(err, errWorkerLeft):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("no operator returned within %s: %w", returnTimeout, err)
	}
	r.reached = time.Now()
	return back, nil
}

// pauseOrGiveUp pauses if the last connection brought no progress. It returns an error if there was no progress for
// returnTimeout.
func (r *reconnectLimit) pauseOrGiveUp(ctx context.Context, progress uint64, lost error) error {
	if progress != r.progress || time.Since(r.reached) >= minWorkingStream {
		r.progress, r.since = progress, time.Now()
		return nil
	}
	if time.Since(r.since) >= returnTimeout {
		return fmt.Errorf("the operator answers, but has sent no events for %s: %w", returnTimeout, lost)
	}
	select {
	case <-time.After(returnRetry):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
