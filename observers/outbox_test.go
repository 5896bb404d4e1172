package observers

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestFactsWaitForAJournalThatCannotBeWrittenAndTheNewestWins(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), node("b", "2"))
		b.paper.broken = errors.Join(errors.New("disk full"), journal.ErrUnwritable)
	}, func(b *bench) {
		if b.Synced() {
			b.Error("synced, although nothing is in the journal")
		}
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(time.Minute)
		b.put(node("a", "1", unreachable(time.Now())))
		b.remove(node("b", "2"))
		b.pass(time.Minute)
		b.wrote()
		if b.paper.tries > 150 {
			b.Errorf("%d tries in two minutes", b.paper.tries)
		}
		if got := b.logged("facts cannot be written"); got != 1 {
			b.Errorf("said %d times that facts cannot be written, want once", got)
		}
		b.paper.breakWith(nil)
		b.pass(2 * time.Second)
		b.wrote("node.observed a 1 worker unreachable since 00:01:00")
		if !b.Synced() {
			b.Error("not synced after the journal works again")
		}
	})
}

func TestAChangeDuringAWriteIsWrittenNext(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"))
		b.paper.slow = 50 * time.Millisecond
	}, func(b *bench) {
		b.paper.take()
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(30 * time.Millisecond) // gathered, and being written
		b.put(node("a", "1"))
		b.pass(time.Second)
		b.wrote("node.observed a 1 worker unreachable since 00:00:00", "node.observed a 1 worker")
	})
}

func TestAChangeDuringAFailingWriteIsNotForgotten(t *testing.T) {
	watching(t, func(b *bench, _ *Options) {
		b.put(node("a", "1"), node("b", "2"))
		b.paper.slow = 50 * time.Millisecond
	}, func(b *bench) {
		b.paper.take()
		b.paper.breakWith(errors.New("disk full"))
		b.put(node("a", "1", unreachable(time.Now())))
		b.pass(30 * time.Millisecond) // gathered, and being refused
		b.put(node("b", "2", unreachable(time.Now())))
		b.pass(500 * time.Millisecond)
		b.paper.breakWith(nil)
		b.pass(2 * time.Second)
		b.wrote(
			"node.observed a 1 worker unreachable since 00:00:00",
			"node.observed b 2 worker unreachable since 00:00:00",
		)
	})
}

func TestAHeartbeatDoesNotEvenWakeTheWriter(t *testing.T) {
	out := newOutbox(Options{Recorder: &paper{}})
	sink := &nodeSink{out: out}
	sink.all([]any{node("a", "1")})
	if <-out.wake; !out.flush(t.Context()) {
		t.Fatal("the list was not written")
	}
	sink.seen(node("a", "1", heartbeat))
	if len(out.wake) > 0 {
		t.Error("a heartbeat woke the writer")
	}
	sink.seen(node("a", "1", unreachable(time.Now())))
	if len(out.wake) != 1 {
		t.Error("a change did not wake the writer")
	}
}

func TestOutagesDuringAnUnwritableJournalAreOne(t *testing.T) {
	watching(t, func(b *bench, _ *Options) { b.put(node("a", "1")) }, func(b *bench) {
		b.paper.take()
		b.paper.breakWith(errors.New("disk full"))
		for range 3 {
			b.fall(errRefused)
			b.pass(20 * time.Second)
			b.rise()
			b.pass(40 * time.Second)
		}
		b.paper.breakWith(nil)
		b.pass(2 * time.Second)
		b.wrote("api.lost the Kubernetes API is unavailable: connection refused", "api.recovered lost at 00:00:00")
	})
}

func TestAnOutageIsDatedByTheJournalsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var api apiFacts
		lost := time.Now()
		api.lose(lost, "refused")
		<-time.After(time.Minute)
		api.recover()
		due := api.due(func() time.Time { return time.Now().Add(3 * time.Hour) })
		if len(due.after) != 1 {
			t.Fatalf("due is %+v, want the end of the outage", due)
		}
		if got := due.after[0].Payload.(journal.APIRecovered).LostAt; !got.Equal(lost.Add(3 * time.Hour)) {
			t.Errorf("it is on record since %s, want %s", got, lost.Add(3*time.Hour))
		}
	})
}

func TestAnOutageThatBeginsWhileTheEndOfTheLastIsWrittenIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var api apiFacts
		api.lose(time.Unix(1, 0), "first")
		api.recover()
		due := api.due(time.Now)
		api.lose(time.Unix(2, 0), "second")
		api.written(due)
		due = api.due(time.Now)
		if len(due.before) != 1 || due.before[0].Payload.(journal.APILost).Error != "second" || len(due.after) != 0 {
			t.Fatalf("due is %+v, want the beginning of the second outage", due)
		}
		api.written(due)
		api.recover()
		due = api.due(time.Now)
		if len(due.after) != 1 || !due.after[0].Payload.(journal.APIRecovered).LostAt.Equal(time.Unix(2, 0)) {
			t.Fatalf("due is %+v, want the end of the second outage", due)
		}
	})
}
