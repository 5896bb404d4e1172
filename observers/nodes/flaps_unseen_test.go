package nodes_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// A node that flaps, is lost, returns and is lost again while EKCO does not see it
// (a watch that broke, an API that was away): the age of the new loss is told as
// that of the old one, against the taint's own word.
func TestALossOfANodeThatFlapsDoesNotCountFromALossBefore(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Settles = 30 * time.Minute
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Paper.Take()
		flap(b, 5, 10*time.Second, time.Minute)
		b.Paper.Take()
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(29 * time.Minute)
		// It was back meanwhile, unseen; this loss is ten seconds old.
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(2 * time.Minute)
		b.Wrote()
	})
}
