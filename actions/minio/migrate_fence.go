package minio

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

// errServes keeps EKCO from overwriting the MinIO that serves clients with an older copy.
var errServes = errors.New("clients use ha-minio, which now has the newest data: EKCO copies nothing more to it")

// elsewhereError stops a migration while another client changes the Service.
type elsewhereError struct{ leads journal.MinioService }

func (e elsewhereError) Error() string {
	if e.leads == "" {
		return "Service minio is gone: EKCO copies nothing until it exists again"
	}
	return fmt.Sprintf("another Kubernetes client made Service minio select %s: EKCO copies nothing while it does", e.leads)
}

// fence reports whether the target may be changed, by what the Service selects. Concurrent callers share an answer.
type fence struct {
	api   minio.API
	trail *trail
	// turn is held while a question is asked.
	turn chan struct{}

	mu    sync.Mutex
	leads journal.MinioService
	// version is the resource version since which the Service must have selected that, "" for any.
	version string
	// answered is when the question with the last good answer was asked.
	answered time.Time
	// next is the question that was not asked yet.
	next *question
}

// question is shared by all callers that came before it is asked.
type question struct {
	done chan struct{}
	err  error
}

// newFence expects the Service to select standalone MinIO.
func newFence(api minio.API) *fence {
	return &fence{api: api, turn: make(chan struct{}, 1), leads: journal.MinioServiceSingle}
}

// expect sets what the Service must select, without a change since that version.
func (f *fence) expect(leads journal.MinioService, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads, f.version, f.answered = leads, version, time.Time{}
}

// open returns nil if the target may be changed, by an answer to a question that was asked since open was called, or at
// most atMost ago.
func (f *fence) open(ctx context.Context, atMost time.Duration) error {
	for {
		f.mu.Lock()
		if atMost > 0 && time.Since(f.answered) < atMost {
			f.mu.Unlock()
			return nil
		}
		q, mine := f.next, f.next == nil
		if mine {
			q = &question{done: make(chan struct{})}
			f.next = q
		}
		f.mu.Unlock()
		if mine {
			f.ask(ctx, q)
			return q.err
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The caller that asked may have had a shorter deadline.
		if !errors.Is(q.err, context.Canceled) && !errors.Is(q.err, context.DeadlineExceeded) || ctx.Err() != nil {
			return q.err
		}
	}
}

// ask asks for all callers, one question at a time.
func (f *fence) ask(ctx context.Context, q *question) {
	defer close(q.done)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		q.err = ctx.Err()
	}
	f.mu.Lock()
	f.next = nil // later callers wait for another question
	began, expected, version := time.Now(), f.leads, f.version
	f.mu.Unlock()
	if q.err != nil {
		return
	}
	leads, has, err := f.api.Leads(ctx)
	switch {
	case err != nil:
		q.err = fmt.Errorf("check what Service minio selects before a change: %w", err)
	case leads == journal.MinioServiceHA:
		q.err = errServes
	case leads != expected:
		q.err = elsewhereError{leads}
	case version != "" && !f.trail.unchanged(has, version):
		q.err = errTouched
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.leads == expected && f.version == version {
			f.answered = began
		}
	}
}
