package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/journal"
)

func (s suite) created(t *testing.T) {
	store := s.open(t)
	events := mustRead(t, store, journal.Query{})
	if len(events) != 1 || events[0].Seq != 1 || events[0].Type != journal.TypeJournalCreated {
		t.Fatalf("a new journal holds %+v, want journal.created at 1", events)
	}
	payload, err := events[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := store.Stat(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	created := payload.(*journal.JournalCreated)
	if created.JournalID == "" || created.JournalID != stat.JournalID || created.Format != stat.Format {
		t.Errorf("created says %+v, stat says %+v", created, stat)
	}
}

func (s suite) batch(t *testing.T) {
	store := s.open(t)
	for range 3 {
		mustAppend(t, store, observed("a"))
		events := mustAppend(t, store, observedMany(5)...)
		for i, event := range events {
			if want := fmt.Sprintf("node-%d", i); event.Subject.Name != want {
				t.Errorf("event %d is about %s, want %s", i, event.Subject.Name, want)
			}
			if event.Seq != events[0].Seq+uint64(i) {
				t.Errorf("events[%d] has number %d, but the first has %d: numbers are not consecutive", i, event.Seq, events[0].Seq)
			}
		}
	}
	if events := mustRead(t, store, journal.Query{}); len(events) != 1+3*6 {
		t.Errorf("the journal holds %d events, want %d", len(events), 1+3*6)
	}
}

func (s suite) atomic(t *testing.T) {
	store := s.open(t)
	before := mustRead(t, store, journal.Query{})
	bad := journal.Draft{Type: "no.such", Payload: journal.StepStarted{}}
	if _, err := store.Append(context.Background(), observed("a"), bad, observed("b")); !errors.Is(err, journal.ErrUnknownType) {
		t.Fatalf("append of an unknown type: %v", err)
	}
	wantEvents(t, mustRead(t, store, journal.Query{}), before)
}

func (s suite) refused(t *testing.T) {
	store := s.open(t)
	for name, draft := range map[string]journal.Draft{
		"unknown type":    {Type: "no.such", Payload: journal.StepStarted{}},
		"foreign payload": {Type: journal.TypeNodeGone, Payload: journal.StepStarted{}},
		"no payload":      {Type: journal.TypeNodeGone},
	} {
		if _, err := store.Append(context.Background(), draft); err == nil {
			t.Errorf("%s: was appended", name)
		}
	}
	if got := len(mustRead(t, store, journal.Query{})); got != 1 {
		t.Errorf("the journal holds %d events, want 1", got)
	}
}

func (s suite) empty(t *testing.T) {
	store := s.open(t)
	if events := mustAppend(t, store); len(events) != 0 {
		t.Errorf("append of nothing returned %v", events)
	}
	if got := len(mustRead(t, store, journal.Query{})); got != 1 {
		t.Errorf("the journal holds %d events, want 1", got)
	}
}

func (s suite) identical(t *testing.T) {
	store := s.open(t)
	want := mustRead(t, store, journal.Query{})
	rapid.Check(t, func(t *rapid.T) {
		drafts := rapid.SliceOfN(Drafts(), 1, 10).Draw(t, "drafts")
		want = append(want, mustAppend(t, store, drafts...)...)
	})
	wantEvents(t, mustRead(t, store, journal.Query{}), want)
}

func (s suite) odd(t *testing.T) {
	store := s.open(t)
	for _, name := range []string{"a\xff\xfeb", "<&>\"\\\n\u2028", "nœud-😀", "\x00"} {
		want := mustAppend(t, store, observed(name))
		got := mustRead(t, store, journal.Query{After: want[0].Seq - 1})
		wantEvents(t, got, want)
	}
}

func (s suite) chained(t *testing.T) {
	store := s.open(t)
	mustAppend(t, store, observedMany(20)...)
	mustAppend(t, store, observed("<é>"))
	var previous journal.Hash
	for _, event := range mustRead(t, store, journal.Query{}) {
		hash, err := journal.CheckRecord(previous, event.Record())
		if err != nil {
			t.Fatalf("event %d: %v", event.Seq, err)
		}
		previous = hash
	}
}

func (s suite) appendCancelled(t *testing.T) {
	store := s.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := store.Append(ctx, observed("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("append under an ended context: %v", err)
	}
	if got := len(mustRead(t, store, journal.Query{})); got != 1 {
		t.Errorf("the journal holds %d events, want 1", got)
	}
}

func (s suite) concurrent(t *testing.T) {
	const writers, batches, size = 8, 20, 3
	store := s.open(t)
	returned := make([][]journal.Event, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for b := range batches {
				drafts := make([]journal.Draft, size)
				for i := range drafts {
					drafts[i] = observed(fmt.Sprintf("%d-%d-%d", w, b, i))
				}
				events, err := store.Append(context.Background(), drafts...)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				returned[w] = append(returned[w], events...)
			}
		})
	}
	group.Wait()
	stored := mustRead(t, store, journal.Query{After: 1})
	if len(stored) != writers*batches*size {
		t.Fatalf("the journal holds %d events, want %d", len(stored), writers*batches*size)
	}
	for w, events := range returned {
		for i, event := range events {
			if i%size > 0 && event.Seq != events[i-1].Seq+1 {
				t.Errorf("writer %d: batch torn between %d and %d", w, events[i-1].Seq, event.Seq)
			}
			wantEvents(t, stored[event.Seq-2:event.Seq-1], []journal.Event{event})
		}
	}
}

func (s suite) aliasing(t *testing.T) {
	store := s.open(t)
	want := mustRead(t, store, journal.Query{})
	for _, event := range mustRead(t, store, journal.Query{}) {
		clear(event.Payload)
	}
	wantEvents(t, mustRead(t, store, journal.Query{}), want)
	for _, event := range mustAppend(t, store, observed("a")) {
		clear(event.Payload)
	}
	if _, err := mustRead(t, store, journal.Query{After: 1})[0].Decode(); err != nil {
		t.Errorf("the appended event was changed through what append returned: %v", err)
	}
}
