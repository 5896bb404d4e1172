package api

import (
	"context"
	"fmt"
	"time"
)

const (
	// readyTimeout is how long the reasons may take; a later answer misses the probe's timeout.
	readyTimeout = 900 * time.Millisecond
	// readyAgain is how long an answer is reused. Each question takes time of the loop, and the port is open to
	// everybody.
	readyAgain = 100 * time.Millisecond
)

// sharedHealth shares one question among simultaneous requests.
type sharedHealth struct {
	Health
	// turn is held during a question, and guards the fields.
	turn    chan struct{}
	asked   time.Time
	reasons []string
}

func newSharedHealth(health Health) *sharedHealth {
	return &sharedHealth{Health: health, turn: make(chan struct{}, 1)}
}

// Unready implements [Health]. It always returns within readyTimeout.
func (s *sharedHealth) Unready(ctx context.Context) []string {
	// The client may leave, but the answer is shared.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return []string{fmt.Sprintf("no answer within %s", readyTimeout)}
	}
	if s.asked.IsZero() || time.Since(s.asked) >= readyAgain {
		s.reasons = s.Health.Unready(ctx)
		s.asked = time.Now()
	}
	return s.reasons
}
