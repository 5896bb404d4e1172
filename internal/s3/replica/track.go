package replica

import (
	"context"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// tracker records the progress of a pass. Buckets and their objects may be done in any order. The position of the pass
// is before the first object that is not done.
type tracker struct {
	options Options

	mu         sync.Mutex
	all        Result
	reportedAt time.Time
	// buckets are the buckets in progress, and done buckets after them, in order.
	buckets []*progress
	// sinceCheckpoint counts objects since the last checkpoint. checkpointAt is the time of that checkpoint.
	sinceCheckpoint int
	checkpointAt    time.Time
}

// progress is the progress of a bucket. The tracker's mutex guards it.
type progress struct {
	bucket string
	// memory limits the memory of open: one large object can take longer than thousands of objects that follow it.
	memory *memoryLimit
	// open are the objects after the position, of which some are done. first is the number of the first of them. key is
	// the key of the last object before that.
	open  []openObject
	first int
	key   string
	// complete is set when there are no more objects.
	complete bool
}

// openObject is an object that is not done, or that follows an object that is not done.
type openObject struct {
	key         string
	seen, bytes int64
	done        bool
	// release frees the memory of this entry.
	release func()
}

// maxOpenBytes limits the memory of open objects of all buckets: enough for some ten thousand objects.
const maxOpenBytes = 8 << 20

func newTracker(options Options) *tracker {
	now := time.Now()
	return &tracker{options: options, reportedAt: now, checkpointAt: now}
}

// addBucket registers the next bucket.
func (t *tracker) addBucket(bucket string, memory *memoryLimit) *progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &progress{bucket: bucket, memory: memory}
	t.buckets = append(t.buckets, p)
	return p
}

// addObject registers an object and returns its number. It waits while too many objects follow an object that is not
// done.
func (t *tracker) addObject(ctx context.Context, b *progress, p pair) (number int, err error) {
	release, ok := b.memory.acquire(ctx, versionBytes+len(p.key))
	if !ok {
		return 0, ctx.Err()
	}
	one := openObject{key: p.key, seen: int64(len(p.source)), release: release}
	for _, v := range p.source {
		one.bytes += v.Size
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Fingerprint.with(p.fingerprint)
	b.open = append(b.open, one)
	return b.first + len(b.open) - 1, nil
}

// objectDone records that an object is done. It reports the progress, and calls Checkpoint when that is due.
func (t *tracker) objectDone(b *progress, number int) error {
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
		t.sinceCheckpoint += int(max(b.open[0].seen, 1))
		b.open, b.first = b.open[1:], b.first+1
	}
	now := time.Now()
	if now.Sub(t.reportedAt) >= time.Second {
		t.reportedAt = now
		t.options.Progress(t.all.Progress)
	}
	if !moved || t.buckets[0] != b || t.sinceCheckpoint < t.options.CheckpointObjects && now.Sub(t.checkpointAt) < t.options.CheckpointEvery {
		return nil
	}
	return t.checkpoint(Position{Bucket: b.bucket, Key: b.key}, now)
}

func (t *tracker) checkpoint(at Position, now time.Time) error {
	t.sinceCheckpoint, t.checkpointAt = 0, now
	return t.options.Checkpoint(at)
}

// bucketDone records that a bucket is done. When all buckets before it are also done, it calls Checkpoint.
func (t *tracker) bucketDone(b *progress) error {
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

// reportProgress reports the progress.
func (t *tracker) reportProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.options.Progress(t.all.Progress)
}

// count changes the counters while mu is held.
func (t *tracker) count(change func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.all.Progress)
}

// touched records an object that differed or may have differed.
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

// kept records items that stay although only the target has them.
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
