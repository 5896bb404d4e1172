package observers

import (
	"cmp"
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// backoff returns growing delays with jitter. The zero value is ready for use.
type backoff struct {
	last time.Duration
	// most is the longest delay; zero means maxDelay.
	most time.Duration
}

func (b *backoff) reset() { b.last = 0 }

// next returns a random delay between half and all of the present limit.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstDelay), cmp.Or(b.most, maxDelay))
	return b.last/2 + rand.N(b.last/2)
}
