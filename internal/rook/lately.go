package rook

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Lately are objects of which those that somebody reads now and then need not be read once more by
// others who look at them, too. Its own reads are live. It is safe for concurrent use.
type Lately struct {
	kube.Objects

	mu      sync.Mutex
	answers map[kube.Ref]answer
	// changes counts what EKCO has changed: an answer to a question from before is none after it.
	changes int
}

// answer is what was read, or that there is nothing, and when it was asked.
type answer struct {
	raw json.RawMessage
	err error
	at  time.Time
}

// NewLately returns the objects.
func NewLately(objects kube.Objects) *Lately {
	return &Lately{Objects: objects, answers: map[kube.Ref]answer{}}
}

// Within returns the same objects for who is content with what somebody has read since then. What
// they read themselves is no answer for others.
func (l *Lately) Within(age time.Duration) kube.Objects { return recently{l, age} }

// ReadObject implements [kube.Objects].
func (l *Lately) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	asked, changes := time.Now(), l.changed()
	raw, err := l.Objects.ReadObject(ctx, ref)
	l.keep(ref, answer{raw, err, asked}, changes)
	return raw, err
}

// PatchObject implements [kube.Objects].
func (l *Lately) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	defer l.forget(ref)
	return l.Objects.PatchObject(ctx, ref, patch)
}

// ReplaceObject implements [kube.Objects].
func (l *Lately) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	defer l.forget(ref)
	return l.Objects.ReplaceObject(ctx, ref, object)
}

func (l *Lately) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// keep keeps an answer. That nobody could tell is none: each asks anew.
func (l *Lately) keep(ref kube.Ref, a answer, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sentinel := kube.Sentinel(a.err)
	tells := a.err == nil || errors.Is(sentinel, kube.ErrNotFound) || errors.Is(sentinel, kube.ErrForbidden)
	if delete(l.answers, ref); tells && changes == l.changes {
		l.answers[ref] = a
	}
}

// forget drops what was read before a change, also by those who have no answer yet.
func (l *Lately) forget(ref kube.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	delete(l.answers, ref)
}

// recently are the objects of [Lately.Within].
type recently struct {
	*Lately
	age time.Duration
}

// ReadObject implements [kube.Objects].
func (r recently) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	r.mu.Lock()
	a, is := r.answers[ref]
	r.mu.Unlock()
	if is && time.Since(a.at) < r.age {
		return a.raw, a.err
	}
	return r.Objects.ReadObject(ctx, ref)
}
