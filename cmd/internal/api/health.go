package api

import (
	"context"
	"fmt"
	"time"
)

const (
	// readyPatience is how long the reasons may take. A probe that is told late
	// is told nothing.
	readyPatience = 900 * time.Millisecond
	// readyAgain is how long an answer holds. Each question takes a turn of the
	// loop, which has other work than to answer whoever asks on an open port.
	readyAgain = 100 * time.Millisecond
)

// sharedHealth asks once for all who want to know at the same moment.
type sharedHealth struct {
	Health
	// turn is held by who asks, and guards the fields.
	turn    chan struct{}
	asked   time.Time
	reasons []string
}

func newSharedHealth(health Health) *sharedHealth {
	return &sharedHealth{Health: health, turn: make(chan struct{}, 1)}
}

// Unready implements [Health]. It always returns within readyPatience.
func (s *sharedHealth) Unready(ctx context.Context) []string {
	// Who asked may leave; the answer is for the others too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyPatience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return []string{fmt.Sprintf("no answer within %s", readyPatience)}
	}
	if s.asked.IsZero() || time.Since(s.asked) >= readyAgain {
		s.reasons = s.Health.Unready(ctx)
		s.asked = time.Now()
	}
	return s.reasons
}
