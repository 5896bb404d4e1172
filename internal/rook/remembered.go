package rook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// versionLasts is how long a version is believed. It only changes with an upgrade
// of Rook.
const versionLasts = time.Minute

// remembered is the version that Rook was last seen to have.
type remembered struct {
	api API

	mu   sync.Mutex
	last Version
	at   time.Time
	// asking is the question that is under way, nil when there is none.
	asking *inquiry
}

// inquiry is a question for the version that several may wait for.
type inquiry struct {
	over    chan struct{}
	version Version
	err     error
	// givenUp is set when who asked stopped waiting, which says nothing.
	givenUp bool
}

// ask returns the version. Those that ask at the same time share one question.
func (r *remembered) ask(ctx context.Context) (Version, error) {
	for {
		last, recent, asking, mine := r.join()
		if recent {
			return last, nil
		}
		if mine {
			r.detect(ctx, asking)
			return asking.version, asking.err
		}
		select {
		case <-asking.over:
		case <-ctx.Done():
			return Version{}, fmt.Errorf("detect Rook: %w", context.Cause(ctx))
		}
		if !asking.givenUp {
			return asking.version, asking.err
		}
	}
}

// join returns what is remembered, if that is recent, or the question to wait for;
// it is the caller's to ask where mine is set.
func (r *remembered) join() (last Version, recent bool, asking *inquiry, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last.Known && time.Since(r.at) < versionLasts:
		return r.last, true, nil, false
	case r.asking == nil:
		r.asking = &inquiry{over: make(chan struct{}), err: errNotAnswered}
		mine = true
	}
	return Version{}, false, r.asking, mine
}

// errNotAnswered is what others see of a question that ended in a panic.
var errNotAnswered = errors.New("detect Rook: the question was not answered")

func (r *remembered) detect(ctx context.Context, asking *inquiry) {
	defer r.answer(asking)
	found, err := r.api.Detect(ctx)
	switch {
	case err != nil:
		asking.err, asking.givenUp = err, ctx.Err() != nil
	case !found.Present:
		asking.err = fmt.Errorf("detect Rook: %w: %s", kube.ErrNotFound, found.Why)
	default:
		asking.version, asking.err = found.Version, nil
	}
}

// answer ends a question, and remembers the version that it has brought.
func (r *remembered) answer(asking *inquiry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = nil
	if asking.err == nil {
		r.last, r.at = asking.version, time.Now()
	}
	close(asking.over)
}

func (r *remembered) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = Version{}
}
