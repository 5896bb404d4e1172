package rook

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ReadCache lets readers share recent reads of an object; see [ReadCache.MaxAge]. Reads with the ReadCache itself are
// live. It is safe for concurrent use.
type ReadCache struct {
	kube.Objects

	mu      sync.Mutex
	answers map[kube.Ref]answer
	// changes counts EKCO's changes. A read during which it grows is not cached, because the answer may be from before
	// the change.
	changes int
}

// answer is an object or the error of its read, and the time of the read.
type answer struct {
	raw json.RawMessage
	err error
	at  time.Time
}

// NewReadCache returns a cache for reads of the objects.
func NewReadCache(objects kube.Objects) *ReadCache {
	return &ReadCache{Objects: objects, answers: map[kube.Ref]answer{}}
}

// MaxAge returns the same objects for readers that accept an answer of at most this age. If there is no such answer, it
// reads the object, but does not cache the new answer.
func (c *ReadCache) MaxAge(age time.Duration) kube.Objects { return recentReads{c, age} }

// ReadObject implements [kube.Objects].
func (c *ReadCache) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	asked, changes := time.Now(), c.changed()
	raw, err := c.Objects.ReadObject(ctx, ref)
	c.keep(ref, answer{raw, err, asked}, changes)
	return raw, err
}

// PatchObject implements [kube.Objects].
func (c *ReadCache) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	defer c.forget(ref)
	return c.Objects.PatchObject(ctx, ref, patch)
}

// ReplaceObject implements [kube.Objects].
func (c *ReadCache) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	defer c.forget(ref)
	return c.Objects.ReplaceObject(ctx, ref, object)
}

func (c *ReadCache) changed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// keep caches an answer. Of the errors it caches only kube.ErrNotFound and kube.ErrForbidden.
func (c *ReadCache) keep(ref kube.Ref, a answer, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sentinel := kube.Sentinel(a.err)
	tells := a.err == nil || errors.Is(sentinel, kube.ErrNotFound) || errors.Is(sentinel, kube.ErrForbidden)
	if delete(c.answers, ref); tells && changes == c.changes {
		c.answers[ref] = a
	}
}

// forget drops the answer from before a change. It also prevents reads in progress from being cached.
func (c *ReadCache) forget(ref kube.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.answers, ref)
}

// recentReads is the result of [ReadCache.MaxAge].
type recentReads struct {
	*ReadCache
	age time.Duration
}

// ReadObject implements [kube.Objects].
func (r recentReads) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	r.mu.Lock()
	a, is := r.answers[ref]
	r.mu.Unlock()
	if is && time.Since(a.at) < r.age {
		return a.raw, a.err
	}
	return r.Objects.ReadObject(ctx, ref)
}
