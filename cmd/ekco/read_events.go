package main

import (
	"context"
	"errors"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// streamed is one event, or the error that ends a stream.
type streamed struct {
	event journal.Event
	err   error
}

// readEvents sends events to a channel as they arrive, and then the error that ends the stream.
func readEvents(ctx context.Context, backend api.Backend, query journal.Query, events chan<- streamed) {
	hand := func(next streamed) bool {
		select {
		case events <- next:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for event, err := range backend.Events(ctx, query, true) {
		if !hand(streamed{event: event, err: err}) || err != nil {
			return
		}
	}
	hand(streamed{err: errors.New("the stream of events ended")})
}
