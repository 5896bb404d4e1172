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

// errServes keeps what serves clients from being made the same as what does not any more.
var errServes = errors.New("clients use ha-minio, which now has the newest data: EKCO copies nothing more to it")

// elsewhereError keeps a migration from going on beside somebody else's work.
type elsewhereError struct{ leads journal.MinioService }

func (e elsewhereError) Error() string {
	if e.leads == "" {
		return "Service minio is gone: EKCO copies nothing until it exists again"
	}
	return fmt.Sprintf("Service minio was changed to select %s, not by EKCO: EKCO copies nothing while it does", e.leads)
}

// fence says whether the target may be changed, by where the Service leads. Those who ask
// at the same time share an answer.
type fence struct {
	api   minio.API
	trail *trail
	// turn is held by who asks.
	turn chan struct{}

	mu    sync.Mutex
	leads journal.MinioService
	// version is the resource version that the Service shall have led there since, empty for any.
	version string
	// answered is when the question was asked whose answer was the last good one.
	answered time.Time
	// next is the question that has not been asked yet.
	next *question
}

// question is one that several wait for, and all of them before it is asked.
type question struct {
	done chan struct{}
	err  error
}

// newFence expects the Service to lead to the single MinIO.
func newFence(api minio.API) *fence {
	return &fence{api: api, turn: make(chan struct{}, 1), leads: journal.MinioServiceSingle}
}

// shall has the fence expect the Service to lead there, and nowhere else since it had that version.
func (f *fence) shall(leads journal.MinioService, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads, f.version, f.answered = leads, version, time.Time{}
}

// open returns nil if the target may be changed, by an answer to a question that was asked
// since open was called, or no longer ago than atMost.
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
		// Who asked may have been in more of a hurry.
		if !errors.Is(q.err, context.Canceled) && !errors.Is(q.err, context.DeadlineExceeded) || ctx.Err() != nil {
			return q.err
		}
	}
}

// ask asks for all who wait, one question at a time.
func (f *fence) ask(ctx context.Context, q *question) {
	defer close(q.done)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		q.err = ctx.Err()
	}
	f.mu.Lock()
	f.next = nil // who comes from now on waits for another one
	began, shall, version := time.Now(), f.leads, f.version
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
	case leads != shall:
		q.err = elsewhereError{leads}
	case version != "" && !f.trail.unchanged(has, version):
		q.err = errTouched
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.leads == shall && f.version == version {
			f.answered = began
		}
	}
}
