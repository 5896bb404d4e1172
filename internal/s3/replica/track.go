package replica

import (
	"context"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// tracker records the progress of a pass. Buckets and their objects are done in any order; the
// position is the last one up to which everything is done.
type tracker struct {
	options Options

	mu         sync.Mutex
	all        Result
	reportedAt time.Time
	// buckets are those in progress or waiting for earlier ones, in their order.
	buckets []*progress
	// passed counts objects since the last checkpoint, which was at the time at.
	passed int
	at     time.Time
}

// progress is the progress of a bucket. The tracker's mutex guards it.
type progress struct {
	bucket string
	// room limits open: one large object can take longer than thousands after it.
	room *room
	// open are the objects from the position on, of which some are done. first is the number of the
	// first one, and key is the key before it.
	open  []place
	first int
	key   string
	// complete is set when there are no more objects.
	complete bool
}

// place is an object in the order of the bucket.
type place struct {
	key         string
	seen, bytes int64
	done        bool
	// release frees the memory of this place.
	release func()
}

// maxOpenBytes is how many bytes the places after an unfinished object may take: of some ten thousand
// objects.
const maxOpenBytes = 8 << 20

func newTracker(options Options) *tracker {
	now := time.Now()
	return &tracker{options: options, reportedAt: now, at: now}
}

// begin registers a bucket after those before it.
func (t *tracker) begin(bucket string, room *room) *progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &progress{bucket: bucket, room: room}
	t.buckets = append(t.buckets, p)
	return p
}

// found registers an object and returns its number. It waits while too many objects follow an
// unfinished one.
func (t *tracker) found(ctx context.Context, b *progress, p pair) (number int, err error) {
	release, ok := b.room.take(ctx, versionBytes+len(p.key))
	if !ok {
		return 0, ctx.Err()
	}
	one := place{key: p.key, seen: int64(len(p.source)), release: release}
	for _, v := range p.source {
		one.bytes += v.Size
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Fingerprint.with(p.fingerprint)
	b.open = append(b.open, one)
	return b.first + len(b.open) - 1, nil
}

// done records that an object is done.
func (t *tracker) done(b *progress, number int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &b.open[number-b.first]
	one.done = true
	t.all.Seen += one.seen
	t.all.SeenBytes += one.bytes
	moved := false
	for len(b.open) > 0 && b.open[0].done {
		b.key, moved = b.open[0].key, true
		b.open[0].release()
		t.passed += int(max(b.open[0].seen, 1))
		b.open, b.first = b.open[1:], b.first+1
	}
	now := time.Now()
	if now.Sub(t.reportedAt) >= time.Second {
		t.reportedAt = now
		t.options.Progress(t.all.Progress)
	}
	if !moved || t.buckets[0] != b || t.passed < t.options.CheckpointObjects && now.Sub(t.at) < t.options.CheckpointEvery {
		return nil
	}
	return t.checkpoint(Position{Bucket: b.bucket, Key: b.key}, now)
}

func (t *tracker) checkpoint(at Position, now time.Time) error {
	t.passed, t.at = 0, now
	return t.options.Checkpoint(at)
}

// end records that a bucket is done. The position moves to it when all buckets before it are done.
func (t *tracker) end(b *progress) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.complete = true
	last := ""
	for len(t.buckets) > 0 && t.buckets[0].complete {
		last, t.buckets = t.buckets[0].bucket, t.buckets[1:]
	}
	if last == "" {
		return nil
	}
	return t.checkpoint(Position{Bucket: last, Complete: true}, time.Now())
}

// tell reports the progress.
func (t *tracker) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.options.Progress(t.all.Progress)
}

// count changes the counters.
func (t *tracker) count(change func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.all.Progress)
}

// touched records an object that is changed.
func (t *tracker) touched(p pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all.Touched.Count++; t.all.Touched.Count <= MaxTouched {
		t.all.Touched.Objects = append(t.all.Touched.Objects, Object{p.bucket, p.key, len(p.source)})
	}
}

func (t *tracker) notCarried(bucket string, v s3.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.NotCarried.add(Item{bucket, v}.String())
}

// kept records items that stay on the target alone.
func (t *tracker) kept(items ...Item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Kept.Count += len(items)
	t.all.Kept.Items = append(t.all.Kept.Items, items[:min(len(items), MaxNames-len(t.all.Kept.Items))]...)
}

func (t *tracker) result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}
