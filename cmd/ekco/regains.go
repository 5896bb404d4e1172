package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// regains keeps who reaches an operator again, each time its events end, from doing so without
// a pause or for ever: one that answers may still be unable to tell them.
type regains struct {
	// come is how far whoever was told had come at the last loss, reached when an operator
	// was reached after it, since when nothing came of that.
	come           uint64
	reached, since time.Time
}

// steady is how long the events of an operator must last that is not merely in the way.
const steady = 10 * returnRetry

// await reaches an operator again after the loss of one. Come is how far it was told until then.
func (r *regains) await(ctx context.Context, come uint64, lost error, dial func(context.Context) (operator, error)) (operator, error) {
	if err := r.rest(ctx, come, lost); err != nil {
		return nil, err
	}
	back, err := awaitOperator(ctx, dial)
	switch {
	case errors.Is(err, errWorkerLeft):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("no operator came back within %s: %w", returnPatience, err)
	}
	r.reached = time.Now()
	return back, nil
}

// rest waits for a moment if the last operator told nothing, and gives up if none has for long.
func (r *regains) rest(ctx context.Context, come uint64, lost error) error {
	if come != r.come || time.Since(r.reached) >= steady {
		r.come, r.since = come, time.Now()
		return nil
	}
	if time.Since(r.since) >= returnPatience {
		return fmt.Errorf("an operator answers, and for %s what happens could not be had of it: %w", returnPatience, lost)
	}
	select {
	case <-time.After(returnRetry):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
