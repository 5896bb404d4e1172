package observers

import (
	"testing"
	"time"
)

// A node that flaps, is lost, returns and is lost again while EKCO does not see it
// (a watch that broke, an API that was away): the age of the new loss is told as
// that of the old one, against the taint's own word.
func TestALossOfANodeThatFlapsDoesNotCountFromALossBefore(t *testing.T) {
	watching(t, func(b *bench, o *Options) {
		o.Settles = 30 * time.Minute
		b.put(node("a", "1"))
	}, func(b *bench) {
		b.paper.take()
		b.flap(5, 10*time.Second, time.Minute)
		b.paper.take()
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(29 * time.Minute)
		// It was back meanwhile, unseen; this loss is ten seconds old.
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(2 * time.Minute)
		b.wrote()
	})
}
