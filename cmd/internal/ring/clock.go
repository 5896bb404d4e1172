package ring

import (
	"context"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
)

// clockCheckInterval is how often an idle loop compares the machine's clock with the ring's clock. A busy loop compares
// them before each event.
const clockCheckInterval = 10 * time.Second

// setClock makes the ring's clock follow the machine's clock. If the last operator ran in the same boot of the machine,
// the earlier events of this start used that operator's clock.
func (r *Ring) setClock(ctx context.Context) error {
	return r.withRetries(ctx, "write to the journal", func(ctx context.Context) error {
		var followErr error
		err := r.do(ctx, func(*fsm.State) {
			r.followsClock = true
			if followErr = r.followClock(ctx); followErr == nil {
				followErr = r.unrecordedJump
			}
		})
		if err != nil {
			return err
		}
		return followErr
	})
}

// hasClockDrifted reports whether the machine's clock differs from the ring's clock.
func (r *Ring) hasClockDrifted() bool {
	return r.followsClock && r.clock.Drift().Abs() >= clock.Tolerance
}

// followClock compares the machine's clock with the ring's clock, which counts elapsed time. If the machine's clock was
// set or the machine slept, followClock records the jump, and moves the ring's clock and all times in the loop by the
// same amount. EKCO decides nothing until the jump is recorded. An error is fatal.
func (r *Ring) followClock(ctx context.Context) error {
	if !r.hasClockDrifted() {
		r.unrecordedJump = nil
		return nil
	}
	by := r.clock.Drift().Round(time.Millisecond)
	err := r.store.appendMoved(ctx, r.clock, by, journal.Draft{
		Type: journal.TypeClockJumped, Subject: journal.OperatorSubject, Actor: Actor,
		Payload: journal.ClockJumped{By: journal.Duration(by)},
	})
	if err != nil {
		r.unrecordedJump = fmt.Errorf("the machine's clock was moved by %s, and EKCO cannot record that: %w", by, err)
		return nil
	}
	r.unrecordedJump, r.lastSearch = nil, lastSearch{}
	return r.foldNewEvents(ctx)
}

// clockSkew returns how far the API server's clock is ahead of the ring's clock, or nil if unknown.
func (r *Ring) clockSkew() *journal.Duration {
	server, known := r.kube.ServerTime()
	if !known {
		return nil
	}
	skew := journal.Duration(server.Sub(r.clock.Now()).Round(100 * time.Millisecond))
	return &skew
}
