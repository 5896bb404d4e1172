package api

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// follow follows what happens, or an action, until it is ended, and returns what ends it.
func follow(ctx context.Context, t *testing.T, backend *followedBackend, client *Client, action string) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		for _, err := range client.Events(ctx, journal.Query{Action: action}, true) {
			ended <- err
		}
	}()
	<-backend.following
	return ended
}

// followedBackend says when somebody follows.
type followedBackend struct {
	fakeBackend
	following chan struct{}
}

func (f *followedBackend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		if follow {
			f.following <- struct{}{}
		}
		f.fakeBackend.Events(ctx, query, follow)(yield)
	}
}

func TestWhoFollowsForLongestIsEndedWhenTooManyDo(t *testing.T) {
	backend := &followedBackend{following: make(chan struct{})}
	backend.status.Actions = []journal.ActionRecord{{ID: "purge-w-1"}}
	client := dial(t, serve(t, backend))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()

	purge := follow(ctx, t, backend, client, "purge-w-1")
	over := follow(ctx, t, backend, client, "purge-w-0")
	next := follow(ctx, t, backend, client, "")
	others := []<-chan error{purge}
	for range maxFollowers - 3 {
		others = append(others, follow(ctx, t, backend, client, ""))
	}
	select {
	case err := <-over:
		t.Fatalf("ended while there was room: %v", err)
	default:
	}
	for _, oldest := range []<-chan error{over, next} {
		others = append(others, follow(ctx, t, backend, client, ""))
		if err := <-oldest; !errors.Is(err, ErrCrowded) {
			t.Errorf("the oldest was ended by %v", err)
		}
	}
	cancel()
	for i, other := range others {
		all.Go(func() {
			if err := <-other; err != nil {
				t.Errorf("follower %d was ended by %v", i, err)
			}
		})
	}
}

func TestWhoHasLeftIsNotCounted(t *testing.T) {
	var f followers
	none := func(context.Context) (func(string) bool, error) { return func(string) bool { return false }, nil }
	first, leave := f.enter(t.Context(), "", none)
	defer leave()
	for range 3 * maxFollowers {
		_, leave := f.enter(t.Context(), "", none)
		leave()
	}
	if first.Err() != nil {
		t.Errorf("it was ended: %v", context.Cause(first))
	}
}

func TestNobodyIsEndedWhileNobodySaysWhichActionsAreOpen(t *testing.T) {
	var f followers
	unknown := func(context.Context) (func(string) bool, error) { return nil, errors.New("no answer") }
	for range 2 * maxFollowers {
		watched, leave := f.enter(t.Context(), "", unknown)
		defer func() {
			if watched.Err() != nil {
				t.Errorf("it was ended: %v", context.Cause(watched))
			}
			leave()
		}()
	}
}
