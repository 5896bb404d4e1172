package replica

import (
	"context"
	"sync"
)

// room limits the memory of a listing. Only one goroutine takes from it.
type room struct {
	size  int
	mu    sync.Mutex
	taken int
	// freed has a value if memory was freed since it was last received.
	freed chan struct{}
}

func newRoom(size int) *room { return &room{size: size, freed: make(chan struct{}, 1)} }

// take waits until there is room for so many bytes; more than the limit are allowed when nothing
// else is taken. It returns a function that frees them, and false if ctx ends first.
func (r *room) take(ctx context.Context, bytes int) (release func(), ok bool) {
	for !r.try(bytes) {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return nil, false
		}
	}
	return func() { r.give(bytes) }, true
}

func (r *room) try(bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken > 0 && r.taken+bytes > r.size {
		return false
	}
	r.taken += bytes
	return true
}

func (r *room) give(bytes int) {
	r.mu.Lock()
	r.taken -= bytes
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
