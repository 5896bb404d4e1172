package podexec

import (
	"sync"
	"time"
)

// refusalLasts is how long WebSocket is not tried after a refusal.
const refusalLasts = 10 * time.Minute

// refusal is when a WebSocket was last refused.
type refusal struct {
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

func (r *refusal) remember() { r.set(r.now()) }
func (r *refusal) forget()   { r.set(time.Time{}) }

func (r *refusal) set(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = at
}

func (r *refusal) recent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.last.IsZero() && r.now().Sub(r.last) < refusalLasts
}
