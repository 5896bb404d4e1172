package ring

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
)

// lookAtClock is how often an idle loop compares the machine's clock with its
// own. A busy one does so before everything it does.
const lookAtClock = 10 * time.Second

// setClock sees to it that the clock is the machine's from here on. What a start
// has written before is by the clock of the last operator, if that ran in the
// same boot.
func (r *Ring) setClock(ctx context.Context) error {
	return r.patiently(ctx, "write to the journal", func(ctx context.Context) error {
		var followErr error
		err := r.do(ctx, func(*fsm.State) {
			r.followsClock = true
			if followErr = r.followClock(ctx); followErr == nil {
				followErr = r.adrift
			}
		})
		if err != nil {
			return err
		}
		return followErr
	})
}

// drifted reports whether the machine's clock is elsewhere.
func (r *Ring) drifted() bool {
	return r.followsClock && r.clock.Drift().Abs() >= clock.Tolerance
}

// followClock compares the machine's clock with the own one, which counts what
// passes. If the machine's was set, or the machine slept, that is put on record,
// and both the clock and all times that the loop knows are moved together. As
// long as it cannot be recorded, the ring is adrift, and nothing is decided. The
// error is fatal.
func (r *Ring) followClock(ctx context.Context) error {
	if !r.drifted() {
		r.adrift = nil
		return nil
	}
	by := r.clock.Drift().Round(time.Millisecond)
	err := r.store.appendMoved(ctx, r.clock, by, journal.Draft{
		Type: journal.TypeClockJumped, Subject: journal.OperatorSubject, Actor: Actor,
		Payload: journal.ClockJumped{By: journal.Duration(by)},
	})
	if err != nil {
		r.adrift = fmt.Errorf("the machine's clock was moved by %s, which cannot be recorded: %w", by, err)
		return nil
	}
	r.adrift, r.lastLook = nil, lastLook{}
	return r.catchUp(ctx)
}

// clockSkew returns how far the API server's clock is ahead of the own one, nil
// when that is not known.
func (r *Ring) clockSkew() *journal.Duration {
	server, known := r.kube.ServerTime()
	if !known {
		return nil
	}
	skew := journal.Duration(server.Sub(r.clock.Now()).Round(100 * time.Millisecond))
	return &skew
}
