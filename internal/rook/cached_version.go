package rook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// maxVersionAge is the maximum age of a cached version. The version changes only with an upgrade of Rook.
const maxVersionAge = time.Minute

// cachedVersion is the last known version of Rook.
type cachedVersion struct {
	api API

	mu   sync.Mutex
	last Version
	at   time.Time
	// current is the query in progress, or nil.
	current *versionQuery
}

// versionQuery is a query of the version that several callers may wait for.
type versionQuery struct {
	done    chan struct{}
	version Version
	err     error
	// givenUp is set if the caller that runs the query stopped waiting. Then other callers must ignore the error.
	givenUp bool
}

// ask returns the version. Callers at the same time share one query.
func (c *cachedVersion) ask(ctx context.Context) (Version, error) {
	for {
		last, recent, asking, mine := c.join()
		if recent {
			return last, nil
		}
		if mine {
			c.detect(ctx, asking)
			return asking.version, asking.err
		}
		select {
		case <-asking.done:
		case <-ctx.Done():
			return Version{}, fmt.Errorf("detect Rook: %w", context.Cause(ctx))
		}
		if !asking.givenUp {
			return asking.version, asking.err
		}
	}
}

// join returns the cached version if it is recent. Otherwise it returns a query to wait for. If mine is set, the caller
// must run the query.
func (c *cachedVersion) join() (last Version, recent bool, asking *versionQuery, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.last.Known && time.Since(c.at) < maxVersionAge:
		return c.last, true, nil, false
	case c.current == nil:
		c.current = &versionQuery{done: make(chan struct{}), err: errNotAnswered}
		mine = true
	}
	return Version{}, false, c.current, mine
}

// errNotAnswered is the error for the other callers if a query panicked.
var errNotAnswered = errors.New("detect Rook: the query for its version did not finish")

func (c *cachedVersion) detect(ctx context.Context, asking *versionQuery) {
	defer c.answer(asking)
	found, err := c.api.Detect(ctx)
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
func (c *cachedVersion) answer(asking *versionQuery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = nil
	if asking.err == nil {
		c.last, c.at = asking.version, time.Now()
	}
	close(asking.done)
}

func (c *cachedVersion) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = Version{}
}
