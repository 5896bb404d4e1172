package observers

import (
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// backoff yields growing delays with jitter. The zero value is ready for use.
type backoff struct{ last time.Duration }

func (b *backoff) reset() { b.last = 0 }

// next returns a delay between half and all of the present bound.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, firstDelay), maxDelay)
	return b.last/2 + rand.N(b.last/2)
}
