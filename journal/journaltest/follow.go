package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// follow returns the first count events that Follow yields.
func follow(t *testing.T, store journal.Store, after uint64, count int) []journal.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var events []journal.Event
	for event, err := range store.Follow(ctx, after) {
		if err != nil {
			t.Fatalf("follow from %d: %v", after, err)
		}
		if events = append(events, event); len(events) == count {
			return events
		}
	}
	t.Fatalf("follow from %d yielded %d events, want %d", after, len(events), count)
	return nil
}

func (s suite) followFromStart(t *testing.T) {
	store := s.open(t)
	mustAppend(t, store, observedMany(400)...)
	wantEvents(t, follow(t, store, 0, 401), mustRead(t, store, journal.Query{}))
}

func (s suite) followFromMiddle(t *testing.T) {
	store := s.open(t)
	mustAppend(t, store, observedMany(50)...)
	wantEvents(t, follow(t, store, 31, 20), mustRead(t, store, journal.Query{After: 31}))
}

func (s suite) followConcurrent(t *testing.T) {
	const batches, size = 40, 7
	store := s.open(t)
	mustAppend(t, store, observedMany(size)...)
	written := make(chan error, 1)
	go func() {
		for range batches {
			if _, err := store.Append(context.Background(), observedMany(size)...); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	got := follow(t, store, 1, size*(batches+1))
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	wantEvents(t, got, mustRead(t, store, journal.Query{After: 1}))
}

func (s suite) slowFollower(t *testing.T) {
	store := s.open(t)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	followed := 0
	for event, err := range store.Follow(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if followed++; event.Seq > 1 {
			break
		}
		// The follower stops here, in the middle of its sequence.
		for range 50 {
			if _, err := store.Append(ctx, observedMany(100)...); err != nil {
				t.Fatalf("append while a follower stands still: %v", err)
			}
		}
	}
	if followed != 2 {
		t.Errorf("followed %d events, want 2", followed)
	}
}

func (s suite) followCancelled(t *testing.T) {
	store := s.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	yielded := 0
	for _, err := range store.Follow(ctx, 0) {
		if err != nil {
			t.Errorf("follow after its context ended: %v", err)
		}
		yielded++
		cancel()
	}
	if yielded != 1 {
		t.Errorf("followed %d events, want 1", yielded)
	}
}

func (s suite) followClosed(t *testing.T) {
	store := s.open(t)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	following, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var last error
		for event, err := range store.Follow(ctx, 0) {
			if last = err; event.Seq == 1 {
				close(following)
			}
		}
		ended <- last
	}()
	<-following
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, journal.ErrClosed) {
		t.Errorf("the follower ended with %v, want that the journal is closed", err)
	}
}
