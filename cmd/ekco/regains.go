package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// regains limits how fast and how long a client reconnects after its event stream ends: an operator that answers may
// still be unable to send events.
type regains struct {
	// come is the last event at the latest loss, reached the time of the latest reconnect, since the time of the last
	// progress.
	come           uint64
	reached, since time.Time
}

// steady is how long a stream must last to count as working.
const steady = 10 * returnRetry

// await connects to an operator again after a loss; come is the last event so far.
func (r *regains) await(ctx context.Context, come uint64, lost error, dial func(context.Context) (operator, error)) (operator, error) {
	if err := r.rest(ctx, come, lost); err != nil {
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

// rest waits for a moment if the last connection brought no event, and returns an error if none has for
// returnTimeout.
func (r *regains) rest(ctx context.Context, come uint64, lost error) error {
	if come != r.come || time.Since(r.reached) >= steady {
		r.come, r.since = come, time.Now()
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
