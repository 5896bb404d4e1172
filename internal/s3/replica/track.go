package replica

import (
	"context"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// tracker knows how far a pass is. Objects are done in any order; the position is
// the last one up to which all are.
type tracker struct {
	options Options

	mu   sync.Mutex
	all  Result
	told time.Time

	bucket string
	// room is for what is in open: one large object can take longer than thousands
	// after it.
	room *room
	// open are the objects from the position on, of which some are done; first is
	// the number of the first of them.
	open  []place
	first int
	// passed counts objects since the last checkpoint, which was at at.
	passed int
	at     time.Time
}

// place is an object in the order of the bucket.
type place struct {
	key         string
	seen, bytes int64
	done        bool
	// release gives back the room of this place.
	release func()
}

// undone is how many bytes the places of objects after one that is not done may
// take: of some ten thousand objects.
const undone = 8 << 20

func newTracker(options Options) *tracker {
	now := time.Now()
	return &tracker{options: options, told: now, at: now}
}

// begin begins a bucket.
func (t *tracker) begin(bucket string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bucket, t.open, t.first, t.room = bucket, nil, 0, newRoom(undone)
}

// found takes note of an object and returns its number. It waits while too many lie
// behind one that is not done.
func (t *tracker) found(ctx context.Context, p pair) (number int, err error) {
	release, ok := t.room.take(ctx, bare+len(p.key))
	if !ok {
		return 0, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := place{key: p.key, seen: int64(len(p.source)), release: release}
	for _, v := range p.source {
		one.bytes += v.Size
	}
	t.open = append(t.open, one)
	return t.first + len(t.open) - 1, nil
}

// done takes note that an object is done.
func (t *tracker) done(number int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &t.open[number-t.first]
	one.done = true
	t.all.Seen += one.seen
	t.all.SeenBytes += one.bytes
	key := ""
	for len(t.open) > 0 && t.open[0].done {
		key = t.open[0].key
		t.open[0].release()
		t.passed += int(max(t.open[0].seen, 1))
		t.open, t.first = t.open[1:], t.first+1
	}
	now := time.Now()
	if now.Sub(t.told) >= time.Second {
		t.told = now
		t.options.Progress(t.all.Progress)
	}
	if key == "" || t.passed < t.options.CheckpointObjects && now.Sub(t.at) < t.options.CheckpointEvery {
		return nil
	}
	return t.checkpoint(Position{Bucket: t.bucket, Key: key}, now)
}

func (t *tracker) checkpoint(at Position, now time.Time) error {
	t.passed, t.at = 0, now
	return t.options.Checkpoint(at)
}

// end takes note that a bucket is done.
func (t *tracker) end() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkpoint(Position{Bucket: t.bucket, Complete: true}, time.Now())
}

// tell tells the progress.
func (t *tracker) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.options.Progress(t.all.Progress)
}

// count changes what was done.
func (t *tracker) count(change func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.all.Progress)
}

func (t *tracker) notCarried(bucket string, v s3.Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.NotCarried.add(bucket + "/" + v.Key + " (" + v.ID + ")")
}

func (t *tracker) result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}
