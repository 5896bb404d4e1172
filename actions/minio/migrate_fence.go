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

// errServes ends a copy to the MinIO that serves clients, because the copy is older than its data.
var errServes = errors.New("clients use ha-minio, which now has the newest data: EKCO copies nothing more to it")

// elsewhereError ends a migration when another client changed the Service.
type elsewhereError struct{ selected journal.MinioService }

func (e elsewhereError) Error() string {
	if e.selected == "" {
		return "Service minio is gone: EKCO copies nothing until it exists again"
	}
	return fmt.Sprintf("another Kubernetes client made Service minio select %s: EKCO copies nothing while it does", e.selected)
}

// fence allows changes of the target only while the Service selects the expected MinIO. Concurrent callers share one
// read of the Service.
type fence struct {
	api   minio.API
	trail *trail
	// readLock limits the reads of the Service to one at a time.
	readLock chan struct{}

	mu       sync.Mutex
	selected journal.MinioService
	// version is the resource version since which the selector must be unchanged. "" means any version.
	version string
	// answered is the start time of the last read that allowed changes.
	answered time.Time
	// next is the read that has not started yet.
	next *serviceRead
}

// serviceRead is one read of the Service, shared by all callers that arrive before the read starts.
type serviceRead struct {
	done chan struct{}
	err  error
}

// newFence returns a fence that expects the Service to select standalone MinIO.
func newFence(api minio.API) *fence {
	return &fence{api: api, readLock: make(chan struct{}, 1), selected: journal.MinioServiceSingle}
}

// expect sets what the Service must select, unchanged since the given resource version.
func (f *fence) expect(selected journal.MinioService, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.selected, f.version, f.answered = selected, version, time.Time{}
}

// check returns nil if the target may be changed. It uses a read that starts after the call, or a read that started at
// most atMost ago.
func (f *fence) check(ctx context.Context, atMost time.Duration) error {
	for {
		f.mu.Lock()
		if atMost > 0 && time.Since(f.answered) < atMost {
			f.mu.Unlock()
			return nil
		}
		q, mine := f.next, f.next == nil
		if mine {
			q = &serviceRead{done: make(chan struct{})}
			f.next = q
		}
		f.mu.Unlock()
		if mine {
			f.readService(ctx, q)
			return q.err
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The read may have failed only because the caller that made it had a shorter deadline.
		if !errors.Is(q.err, context.Canceled) && !errors.Is(q.err, context.DeadlineExceeded) || ctx.Err() != nil {
			return q.err
		}
	}
}

// readService makes one read for all callers that share it. Only one read runs at a time.
func (f *fence) readService(ctx context.Context, q *serviceRead) {
	defer close(q.done)
	select {
	case f.readLock <- struct{}{}:
		defer func() { <-f.readLock }()
	case <-ctx.Done():
		q.err = ctx.Err()
	}
	f.mu.Lock()
	f.next = nil // later callers share the next read
	began, expected, version := time.Now(), f.selected, f.version
	f.mu.Unlock()
	if q.err != nil {
		return
	}
	selected, has, err := f.api.ServiceTarget(ctx)
	switch {
	case err != nil:
		q.err = fmt.Errorf("check what Service minio selects before a change: %w", err)
	case selected == journal.MinioServiceHA:
		q.err = errServes
	case selected != expected:
		q.err = elsewhereError{selected}
	case version != "" && !f.trail.isUnchanged(has, version):
		q.err = errTouched
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.selected == expected && f.version == version {
			f.answered = began
		}
	}
}
