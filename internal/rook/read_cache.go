package rook

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ReadCache lets readers share recent reads of an object. Its own reads are live. It is safe for concurrent
// use.
type ReadCache struct {
	kube.Objects

	mu      sync.Mutex
	answers map[kube.Ref]answer
	// changes counts EKCO's changes: an answer from before a change is not kept.
	changes int
}

// answer is an object or its absence, and when it was read.
type answer struct {
	raw json.RawMessage
	err error
	at  time.Time
}

// NewReadCache returns the objects.
func NewReadCache(objects kube.Objects) *ReadCache {
	return &ReadCache{Objects: objects, answers: map[kube.Ref]answer{}}
}

// MaxAge returns the same objects for readers that accept a live read of at most this age. Their own reads are
// not shared.
func (l *ReadCache) MaxAge(age time.Duration) kube.Objects { return recentReads{l, age} }

// ReadObject implements [kube.Objects].
func (l *ReadCache) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	asked, changes := time.Now(), l.changed()
	raw, err := l.Objects.ReadObject(ctx, ref)
	l.keep(ref, answer{raw, err, asked}, changes)
	return raw, err
}

// PatchObject implements [kube.Objects].
func (l *ReadCache) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	defer l.forget(ref)
	return l.Objects.PatchObject(ctx, ref, patch)
}

// ReplaceObject implements [kube.Objects].
func (l *ReadCache) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	defer l.forget(ref)
	return l.Objects.ReplaceObject(ctx, ref, object)
}

func (l *ReadCache) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// keep keeps an answer. Errors are not kept, except that the object does not exist or may not be read.
func (l *ReadCache) keep(ref kube.Ref, a answer, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sentinel := kube.Sentinel(a.err)
	tells := a.err == nil || errors.Is(sentinel, kube.ErrNotFound) || errors.Is(sentinel, kube.ErrForbidden)
	if delete(l.answers, ref); tells && changes == l.changes {
		l.answers[ref] = a
	}
}

// forget drops what was read before a change, also by reads that have not ended yet.
func (l *ReadCache) forget(ref kube.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	delete(l.answers, ref)
}

// recentReads are the objects of [ReadCache.MaxAge].
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
