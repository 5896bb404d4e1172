package replica

import (
	"context"
	"sync"
)

// room limits the memory of a listing. Only one goroutine may acquire memory from it.
type room struct {
	size  int
	mu    sync.Mutex
	taken int
	// freed receives a value when memory is freed.
	freed chan struct{}
}

func newRoom(size int) *room { return &room{size: size, freed: make(chan struct{}, 1)} }

// acquire waits until the bytes fit. If no other bytes are acquired, it allows even more than the limit. It returns a
// function that frees the bytes. ok is false if ctx ends first.
func (r *room) acquire(ctx context.Context, bytes int) (release func(), ok bool) {
	for !r.tryAcquire(bytes) {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return nil, false
		}
	}
	return func() { r.releaseBytes(bytes) }, true
}

func (r *room) tryAcquire(bytes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken > 0 && r.taken+bytes > r.size {
		return false
	}
	r.taken += bytes
	return true
}

func (r *room) releaseBytes(bytes int) {
	r.mu.Lock()
	r.taken -= bytes
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
