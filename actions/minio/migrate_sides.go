package minio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// sides are the two stores of a migration. The credentials live as long as they do.
type sides struct {
	pod    minio.SinglePod
	source minio.Store
	target minio.Store
}

func (s sides) close() {
	s.source.Close()
	s.target.Close()
}

// noSourceError says that the single MinIO does not serve.
type noSourceError struct{ lacks string }

func (e noSourceError) Error() string {
	return "the single MinIO, which has all data, does not serve: " + e.lacks
}

// open connects to the pod that serves, and to the replicas.
func (m *migrator) open(ctx context.Context) (sides, error) {
	single, err := m.api.Single(ctx)
	if err != nil {
		return sides{}, err
	}
	pod, serves := single.Serving()
	if !serves {
		return sides{}, noSourceError{single.Lacks()}
	}
	return m.openPod(ctx, pod)
}

// openPod connects to a pod of the single MinIO, and to the replicas.
func (m *migrator) openPod(ctx context.Context, pod minio.SinglePod) (sides, error) {
	addresses, err := m.api.Targets(ctx)
	if err != nil {
		return sides{}, err
	}
	credentials, err := m.api.Credentials(ctx)
	if err != nil {
		return sides{}, err
	}
	source, err := m.Stores.Store([]string{pod.Address}, credentials)
	if err != nil {
		return sides{}, err
	}
	target, err := m.Stores.Store(addresses, credentials)
	if err != nil {
		source.Close()
		return sides{}, err
	}
	return sides{pod: pod, source: source, target: &fenced{Store: target, api: m.api}}, nil
}

// errServes keeps what serves clients from being made the same as what does not any more.
var errServes = errors.New("clients are led to ha-minio, which has the newest data from now on: nothing is copied there any more")

// fenced is a target that is not changed any more once clients write to it, whoever had the
// Service lead there. What clients wrote is never removed: that the Service does not lead
// there is asked after the object was seen, and before it is removed. What only adds relies
// on an answer of the last second.
type fenced struct {
	minio.Store
	api minio.API

	mu    sync.Mutex
	asked time.Time
}

// fence is how old an answer may be for what only adds.
const fence = time.Second

func (f *fenced) open(ctx context.Context, atMost time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if atMost > 0 && time.Since(f.asked) < atMost {
		return nil
	}
	now := time.Now()
	leads, _, err := f.api.Leads(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("look where Service minio leads before something is changed: %w", err)
	case leads == journal.MinioServiceHA:
		return errServes
	}
	f.asked = now
	return nil
}

// guarded changes the target if it still may be.
func (f *fenced) guarded(ctx context.Context, atMost time.Duration, change func() error) error {
	if err := f.open(ctx, atMost); err != nil {
		return err
	}
	return change()
}

func (f *fenced) CreateBucket(ctx context.Context, bucket string, locked bool) error {
	return f.guarded(ctx, fence, func() error { return f.Store.CreateBucket(ctx, bucket, locked) })
}

func (f *fenced) RemoveBucket(ctx context.Context, bucket string) error {
	return f.guarded(ctx, 0, func() error { return f.Store.RemoveBucket(ctx, bucket) })
}

func (f *fenced) Set(ctx context.Context, bucket string, name s3.SettingName, value string) error {
	return f.guarded(ctx, fence, func() error { return f.Store.Set(ctx, bucket, name, value) })
}

func (f *fenced) Put(ctx context.Context, bucket string, v s3.Version, content io.Reader, unchecked bool) error {
	return f.guarded(ctx, fence, func() error { return f.Store.Put(ctx, bucket, v, content, unchecked) })
}

func (f *fenced) Complete(ctx context.Context, bucket string, v s3.Version, upload string, parts []s3.Part) error {
	return f.guarded(ctx, fence, func() error { return f.Store.Complete(ctx, bucket, v, upload, parts) })
}

func (f *fenced) PutMarker(ctx context.Context, bucket string, v s3.Version) error {
	return f.guarded(ctx, fence, func() error { return f.Store.PutMarker(ctx, bucket, v) })
}

func (f *fenced) Annotate(ctx context.Context, bucket string, v s3.Version, old s3.Attributes) error {
	return f.guarded(ctx, fence, func() error { return f.Store.Annotate(ctx, bucket, v, old) })
}

func (f *fenced) Remove(ctx context.Context, bucket string, v s3.Version) error {
	return f.guarded(ctx, 0, func() error { return f.Store.Remove(ctx, bucket, v) })
}

func (f *fenced) ImportIAM(ctx context.Context, want *s3.IAM) (refused []string, err error) {
	err = f.guarded(ctx, 0, func() error {
		refused, err = f.Store.ImportIAM(ctx, want)
		return err
	})
	return refused, err
}
