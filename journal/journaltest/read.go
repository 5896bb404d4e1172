package journaltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/journal"
)

// Queries generates queries for events from [Drafts]. last is the number of the journal's last event, and all events
// must have times between from and to.
func Queries(last uint64, from, to time.Time) *rapid.Generator[journal.Query] {
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "unbounded") {
			return time.Time{}
		}
		return from.Add(time.Duration(rapid.Int64Range(-1, int64(to.Sub(from))+1).Draw(t, "offset")))
	})
	return rapid.Custom(func(t *rapid.T) journal.Query {
		oneOf := func(label string, values ...string) string {
			return rapid.SampledFrom(append(values, "", "", "")).Draw(t, label)
		}
		return journal.Query{
			After:  rapid.Uint64Range(0, last+1).Draw(t, "after"),
			Before: rapid.Uint64Range(0, last+2).Draw(t, "before"),
			Since:  instant.Draw(t, "since"),
			Until:  instant.Draw(t, "until"),
			Node:   oneOf("node", "node-0", "node-1", "node-9"),
			Kind:   oneOf("kind", "Node", "Pod", "Cluster", "Nothing"),
			Name:   oneOf("name", "node-0", "default/web-1", "default/web-2"),
			UID:    oneOf("uid", "uid-node-0", "uid-web-1"),
			Action: oneOf("action", "action-0", "action-1", "action-9"),
			Types: rapid.SliceOfN(rapid.SampledFrom([]journal.Type{
				journal.TypeNodeObserved, journal.TypeStepDone, journal.TypePauseSet, journal.TypeNodeGone, "no.such",
			}), 0, 3).Draw(t, "types"),
			Reverse: rapid.Bool().Draw(t, "reverse"),
			Limit:   rapid.IntRange(0, 20).Draw(t, "limit"),
		}
	})
}

// Select returns the events that a correct store yields for the query, if it has these events.
func Select(events []journal.Event, query journal.Query) []journal.Event {
	var selected []journal.Event
	for _, event := range events {
		if query.Matches(event) {
			selected = append(selected, event)
		}
	}
	if query.Reverse {
		slices.Reverse(selected)
	}
	if query.Limit > 0 && len(selected) > query.Limit {
		selected = selected[:query.Limit]
	}
	return selected
}

// CheckQueries tests that the store yields the same events as [Select] for generated queries.
func CheckQueries(t *testing.T, store journal.Store) {
	t.Helper()
	events := mustRead(t, store, journal.Query{})
	first, last := events[0].Time, events[0].Time
	for _, event := range events {
		if event.Time.Before(first) {
			first = event.Time
		}
		if event.Time.After(last) {
			last = event.Time
		}
	}
	queries := Queries(events[len(events)-1].Seq, first, last)
	rapid.Check(t, func(t *rapid.T) {
		query := queries.Draw(t, "query")
		wantEvents(t, mustRead(t, store, query), Select(events, query))
	})
}

// Fill appends at least count generated events, in batches. The same count always gives the same events.
func Fill(t *testing.T, store journal.Store, count int) {
	t.Helper()
	for seed := 0; count > 0; seed++ {
		drafts := rapid.SliceOfN(Drafts(), 40, 120).Example(seed)
		mustAppend(t, store, drafts...)
		count -= len(drafts)
	}
}

func (s suite) queries(t *testing.T) {
	store := s.open(t)
	Fill(t, store, 2500)
	CheckQueries(t, store)
}

func (s suite) readWhileAppending(t *testing.T) {
	const batches, size = 50, 40
	store := s.open(t)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range batches {
			if _, err := store.Append(context.Background(), observedMany(size)...); err != nil {
				t.Errorf("append: %v", err)
				return
			}
		}
	}()
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		events := mustRead(t, store, journal.Query{})
		if (len(events)-1)%size != 0 {
			t.Fatalf("read %d events, which is not a number of whole batches", len(events))
		}
		for i, event := range events {
			if event.Seq != uint64(i)+1 {
				t.Fatalf("event %d has number %d", i+1, event.Seq)
			}
		}
	}
	if got := len(mustRead(t, store, journal.Query{})); got != 1+batches*size {
		t.Errorf("the journal holds %d events, want %d", got, 1+batches*size)
	}
}

func (s suite) appendWhileReading(t *testing.T) {
	store := s.open(t)
	mustAppend(t, store, observedMany(300)...)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	read := 0
	for event, err := range store.Read(ctx, journal.Query{Before: 302}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Append(ctx, observed("echo-"+event.Subject.Name)); err != nil {
			t.Fatal(err)
		}
		read++
	}
	if read != 301 {
		t.Errorf("read %d events, want 301", read)
	}
}

func (s suite) readCancelled(t *testing.T) {
	store := s.open(t)
	mustAppend(t, store, observedMany(10)...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := collect(store.Read(ctx, journal.Query{})); !errors.Is(err, context.Canceled) {
		t.Errorf("read under an ended context: %v", err)
	}
}
