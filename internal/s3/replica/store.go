package replica

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
)

// md5ETag is the length of an ETag that is an MD5. An object that was stored in one request has such an ETag.
const md5ETag = 32

// maxParts is the maximum number of parts of an object.
const maxParts = 10_000

// store stores a version on the target in place of the old one.
func (r *run) store(ctx context.Context, bucket string, c change) error {
	v := c.version
	parts := !v.DeleteMarker && r.needsParts(v)
	replaces := c.old != nil && (c.old.DeleteMarker || v.DeleteMarker)
	if parts && c.isRewritten() {
		if err := r.readAll(ctx, bucket, v); err != nil {
			return err
		}
		replaces = true
	}
	if replaces {
		if err := r.target.Remove(ctx, bucket, *c.old); err != nil {
			return err
		}
		c.old = nil
	}
	switch {
	case v.DeleteMarker:
		return r.retry(ctx, func() error { return r.target.PutMarker(ctx, bucket, v) })
	case parts:
		return r.inParts(ctx, bucket, v)
	}
	return r.inOneRequest(ctx, bucket, c)
}

// isRewritten reports whether the target has the version with the same ETag. A server refuses to store such a version
// again, so EKCO must first remove the old version. Before that, it reads the source's content to its end, because the
// old version may be the only readable copy.
func (c *change) isRewritten() bool { return c.old != nil && c.old.ETag == c.version.ETag }

// readAll reads the content of a version on the source to its end.
func (r *run) readAll(ctx context.Context, bucket string, v s3.Version) error {
	return r.retry(ctx, func() error {
		content, err := r.open(ctx, bucket, v, 0, v.Size)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(io.Discard, content)
		return err
	})
}

// needsParts reports whether a version must be copied in parts. An encrypted object must be stored like the original:
// MinIO decrypts it according to the length of its ETag.
func (r *run) needsParts(v s3.Version) bool {
	if v.Attributes.Encryption != s3.Unencrypted {
		return len(v.ETag) != md5ETag
	}
	return v.Size > 2*r.options.PartSize
}

// inOneRequest stores a version with one request.
func (r *run) inOneRequest(ctx context.Context, bucket string, c change) error {
	v, unchecked := c.version, false
	err := r.retry(ctx, func() error {
		content, err := r.open(ctx, bucket, v, 0, v.Size)
		if err != nil {
			return err
		}
		defer content.Close()
		attributes := *v.Attributes
		attributes.Expires = content.Expires
		v := v
		v.Attributes = &attributes
		if unchecked && c.isRewritten() {
			if err := r.target.Remove(ctx, bucket, *c.old); err != nil {
				return err
			}
			c.old = nil
		}
		err = r.target.Put(ctx, bucket, v, c.old, content, unchecked)
		// The ETag of an encrypted object, for example, is not a checksum of the content. The next attempt does not
		// compare it.
		unchecked = unchecked || errors.Is(err, s3.ErrDigest)
		return err
	})
	if errors.Is(err, s3.ErrExists) {
		return nil
	}
	return err
}

// inParts stores a version in parts, several at the same time.
func (r *run) inParts(ctx context.Context, bucket string, v s3.Version) error {
	select {
	case r.large <- struct{}{}:
		defer func() { <-r.large }()
	case <-ctx.Done():
		return ctx.Err()
	}
	attributes, err := r.source.Describe(ctx, bucket, v)
	if err != nil {
		return err
	}
	v.Attributes = &attributes
	upload, err := r.target.Begin(ctx, bucket, v)
	if errors.Is(err, s3.ErrExists) {
		return nil
	}
	if err != nil {
		return err
	}
	parts, err := r.parts(ctx, bucket, v, upload)
	if err == nil {
		err = r.target.Complete(ctx, bucket, v, upload, parts)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, s3.ErrExists) {
		err = nil
	}
	// ctx may be done, but the upload must be aborted anyway.
	abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, r.target.Abort(abort, bucket, v, upload))
}

// parts stores the parts of a version. After an error it starts no more parts.
func (r *run) parts(ctx context.Context, bucket string, v s3.Version, upload string) ([]s3.Part, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	size := max(r.options.PartSize, (v.Size+maxParts-1)/maxParts)
	parts := make([]s3.Part, max(1, (v.Size+size-1)/size))
	var numbers []int
	for i := range parts {
		numbers = append(numbers, i)
	}
	parallel.Each(r.options.PartsAtOnce, numbers, func(i int) {
		if ctx.Err() != nil {
			return
		}
		offset := int64(i) * size
		part, err := r.part(ctx, bucket, v, upload, i+1, offset, min(size, v.Size-offset))
		if err != nil {
			stop(err)
			return
		}
		parts[i] = part
	})
	return slices.Clip(parts), context.Cause(ctx)
}

func (r *run) part(ctx context.Context, bucket string, v s3.Version, upload string, number int, offset, length int64) (part s3.Part, err error) {
	err = r.retry(ctx, func() error {
		content, err := r.open(ctx, bucket, v, offset, length)
		if err != nil {
			return err
		}
		defer content.Close()
		part, err = r.target.PutPart(ctx, bucket, v, upload, number, content, length)
		return err
	})
	return part, err
}

// retry calls try until it succeeds, returns a final error, or reaches the maximum number of attempts.
func (r *run) retry(ctx context.Context, try func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		if isFinal(err) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(uint(r.options.Attempts)))
	return err
}

// isFinal reports whether another attempt would return the same error.
func isFinal(err error) bool {
	for _, kind := range []error{s3.ErrGone, s3.ErrExists, s3.ErrLocked, s3.ErrUnreadable, s3.ErrNotOffered, s3.ErrDenied, s3.ErrFull, context.Canceled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// open opens content of the source with the bandwidth limit, and counts the bytes that are read.
func (r *run) open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	content, err := r.source.Open(ctx, bucket, v, offset, length)
	if err != nil {
		return s3.Content{}, err
	}
	content.ReadCloser = &metered{ReadCloser: content.ReadCloser, ctx: ctx, run: r}
	return content, nil
}

// metered is content with a bandwidth limit.
type metered struct {
	io.ReadCloser
	ctx context.Context
	run *run
}

// Read reads at most the limiter's burst, and then waits as long as the limiter requires.
func (m *metered) Read(into []byte) (int, error) {
	limit := m.run.options.Bandwidth
	if limit != nil {
		into = into[:min(len(into), max(limit.Burst(), 1))]
	}
	n, err := m.ReadCloser.Read(into)
	m.run.tracker.count(func(p *Progress) { p.CopiedBytes += int64(n) })
	if limit != nil && n > 0 {
		if wait := limit.WaitN(m.ctx, n); wait != nil {
			return n, wait
		}
	}
	return n, err
}
