package main

import (
	"context"
	"errors"
	"sync"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

// streamed is one event, or the error that ends a stream.
type streamed struct {
	event journal.Event
	err   error
}

// readEvents returns a channel. It sends events to the channel as they arrive, and then the error that ends the stream.
// The caller must call stop, which ends the stream and waits until it has ended.
func readEvents(ctx context.Context, backend api.Backend, query journal.Query) (events <-chan streamed, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	stream := make(chan streamed)
	send := func(next streamed) bool {
		select {
		case stream <- next:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for event, err := range backend.Events(ctx, query, true) {
			if !send(streamed{event: event, err: err}) || err != nil {
				return
			}
		}
		send(streamed{err: errors.New("the stream of events ended")})
	})
	return stream, func() {
		cancel()
		reading.Wait()
	}
}
