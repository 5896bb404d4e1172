package observers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestFactsWaitForAJournalThatCannotBeWrittenAndTheNewestWins(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), node("b", "2"))
		b.Paper.Broken = errors.Join(errors.New("disk full"), journal.ErrUnwritable)
	}, func(b *bench) {
		if b.Synced() {
			b.Error("synced, although nothing is in the journal")
		}
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(time.Minute)
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Remove(node("b", "2"))
		b.Pass(time.Minute)
		b.Wrote()
		if b.Paper.Tries > 150 {
			b.Errorf("%d tries in two minutes", b.Paper.Tries)
		}
		if got := b.Logged("cannot write facts to the journal"); got != 1 {
			b.Errorf("said %d times that facts cannot be written, want once", got)
		}
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote("node.observed a 1 worker unreachable since 00:01:00")
		if !b.Synced() {
			b.Error("not synced after the journal works again")
		}
	})
}

func TestAChangeDuringAWriteIsWrittenNext(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"))
		b.Paper.Slow = 50 * time.Millisecond
	}, func(b *bench) {
		b.Paper.Take()
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(30 * time.Millisecond) // gathered, and being written
		b.Put(node("a", "1"))
		b.Pass(time.Second)
		b.Wrote("node.observed a 1 worker unreachable since 00:00:00", "node.observed a 1 worker")
	})
}

func TestAChangeDuringAFailingWriteIsNotForgotten(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(node("a", "1"), node("b", "2"))
		b.Paper.Slow = 50 * time.Millisecond
	}, func(b *bench) {
		b.Paper.Take()
		b.Paper.BreakWith(errors.New("disk full"))
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(30 * time.Millisecond) // gathered, and being refused
		b.Put(node("b", "2", unreachable(time.Now())))
		b.Pass(500 * time.Millisecond)
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote(
			"node.observed a 1 worker unreachable since 00:00:00",
			"node.observed b 2 worker unreachable since 00:00:00",
		)
	})
}

func TestOutagesDuringAnUnwritableJournalAreOne(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		b.Paper.Take()
		b.Paper.BreakWith(errors.New("disk full"))
		for range 3 {
			b.Fall(observerstest.ErrRefused)
			b.Pass(20 * time.Second)
			b.Rise()
			b.Pass(40 * time.Second)
		}
		b.Paper.BreakWith(nil)
		b.Pass(2 * time.Second)
		b.Wrote("api.lost the Kubernetes API is unavailable: connection refused", "api.recovered lost at 00:00:00")
	})
}
