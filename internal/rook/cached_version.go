package rook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// versionLasts is how long a version is used. It changes only with an upgrade of Rook.
const versionLasts = time.Minute

// cachedVersion is the last known version of Rook.
type cachedVersion struct {
	api API

	mu   sync.Mutex
	last Version
	at   time.Time
	// asking is the query that is under way, or nil.
	asking *inquiry
}

// inquiry is a query of the version that several callers may wait for.
type inquiry struct {
	over    chan struct{}
	version Version
	err     error
	// givenUp is set if its caller stopped waiting, so its error does not count for others.
	givenUp bool
}

// ask returns the version. Callers at the same time share one query.
func (r *cachedVersion) ask(ctx context.Context) (Version, error) {
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

// join returns the cached version if it is recent, or the query to wait for; if mine is set, the caller has to
// run it.
func (r *cachedVersion) join() (last Version, recent bool, asking *inquiry, mine bool) {
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

// errNotAnswered is the error for other callers if a query panicked.
var errNotAnswered = errors.New("detect Rook: the question was not answered")

func (r *cachedVersion) detect(ctx context.Context, asking *inquiry) {
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

// answer ends a query, and caches the version.
func (r *cachedVersion) answer(asking *inquiry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking = nil
	if asking.err == nil {
		r.last, r.at = asking.version, time.Now()
	}
	close(asking.over)
}

func (r *cachedVersion) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = Version{}
}
