package api

import (
	"context"
	"fmt"
	"time"
)

const (
	// readyTimeout limits a check. A later answer would exceed the timeout of the probe.
	readyTimeout = 900 * time.Millisecond
	// readyMaxAge is how long an answer is reused. Each check takes time in the loop, and every client can reach the
	// port.
	readyMaxAge = 100 * time.Millisecond
)

// sharedHealth makes simultaneous requests share one check.
type sharedHealth struct {
	Health
	// turn is taken during a check, and guards the fields.
	turn    chan struct{}
	asked   time.Time
	reasons []string
}

func newSharedHealth(health Health) *sharedHealth {
	return &sharedHealth{Health: health, turn: make(chan struct{}, 1)}
}

// Unready implements [Health]. It always returns within readyTimeout.
func (s *sharedHealth) Unready(ctx context.Context) []string {
	// A cancelled request must not cancel the check, because other requests share its answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return []string{fmt.Sprintf("no answer within %s", readyTimeout)}
	}
	if s.asked.IsZero() || time.Since(s.asked) >= readyMaxAge {
		s.reasons = s.Health.Unready(ctx)
		s.asked = time.Now()
	}
	return s.reasons
}
