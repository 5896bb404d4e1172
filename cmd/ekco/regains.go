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
	// lastEvent is the last event at the latest loss. reached is the time of the latest reconnect. since is the time of
	// the last progress.
	lastEvent      uint64
	reached, since time.Time
}

// minWorkingStream is how long a stream must last to count as working.
const minWorkingStream = 10 * returnRetry

// await reconnects to an operator after a lost connection. come is the last event so far.
func (r *reconnectLimit) await(ctx context.Context, come uint64, lost error, dial func(context.Context) (operator, error)) (operator, error) {
	if err := r.pauseOrGiveUp(ctx, come, lost); err != nil {
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

// pauseOrGiveUp pauses if the last connection brought no event. It returns an error if no connection has brought an
// event for returnTimeout.
func (r *reconnectLimit) pauseOrGiveUp(ctx context.Context, come uint64, lost error) error {
	if come != r.lastEvent || time.Since(r.reached) >= minWorkingStream {
		r.lastEvent, r.since = come, time.Now()
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
