package minio

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
)

// TestAnAttemptThatRanOutOfTimeIsATry: only who is asked to stop was interrupted.
func TestAnAttemptThatRanOutOfTimeIsATry(t *testing.T) {
	late := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(ctx, -time.Second)
		cancel()
		return ctx
	}
	stopped := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	for name, test := range map[string]struct {
		end   func(context.Context) context.Context
		tries int
	}{"out of time": {late, 1}, "asked to stop": {stopped, 0}} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
				a := &attempt{migrator: m, step: actions.StepContext{Log: slog.New(slog.DiscardHandler)}, selectedNoPods: true}
				_, err := a.switchBack(test.end(w.T.Context()), errors.New("it took too long"))
				if left := (&actions.UnfinishedError{}); !errors.As(err, &left) || left.Waits != (test.tries == 0) {
					t.Errorf("it came to %v", err)
				}
				if a.state.Tries != test.tries || a.state.FailedAt.IsZero() != (test.tries == 0) {
					t.Errorf("%d tries, failed at %s", a.state.Tries, a.state.FailedAt)
				}
			})
		})
	}
}
