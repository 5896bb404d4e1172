package replica

import (
	"context"
	"sync"
)

// memoryLimit limits the memory of a listing. Only one goroutine may acquire memory from it.
type memoryLimit struct {
	size  int
	mu    sync.Mutex
	taken int
	// freed receives a value when memory is freed.
	freed chan struct{}
}

func newMemoryLimit(size int) *memoryLimit {
	return &memoryLimit{size: size, freed: make(chan struct{}, 1)}
}

// acquire waits until the bytes fit. If no other bytes are acquired, it allows even more than the limit. It returns a
// function that frees the bytes. ok is false if ctx ends first.
func (m *memoryLimit) acquire(ctx context.Context, bytes int) (release func(), ok bool) {
	for !m.tryAcquire(bytes) {
		select {
		case <-m.freed:
		case <-ctx.Done():
			return nil, false
		}
	}
	return func() { m.releaseBytes(bytes) }, true
}

func (m *memoryLimit) tryAcquire(bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken > 0 && m.taken+bytes > m.size {
		return false
	}
	m.taken += bytes
	return true
}

func (m *memoryLimit) releaseBytes(bytes int) {
	m.mu.Lock()
	m.taken -= bytes
	m.mu.Unlock()
	select {
	case m.freed <- struct{}{}:
	default:
	}
}
