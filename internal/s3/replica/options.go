package replica

import (
	"time"

	"golang.org/x/time/rate"
)

// The defaults of [Options].
const (
	DefaultWorkers           = 32
	DefaultPartSize          = 16 << 20
	DefaultLargeAtOnce       = 2
	DefaultPartsAtOnce       = 4
	DefaultAttempts          = 5
	DefaultCheckpointObjects = 10_000
	DefaultCheckpointEvery   = time.Minute
)

// Options of a sync pass. The zero value means the defaults.
type Options struct {
	// From is the position that an interrupted pass had reached. The pass skips all objects up to it.
	From Position
	// Workers is the number of objects that are copied at the same time. Copying a small object is mostly
	// waiting.
	Workers int
	// PartSize is the size of parts in bytes, at least 5 MiB. Objects larger than two parts are copied in parts, so
	// that a broken connection costs only one part. The parts of a very large object are larger, because the number
	// of parts is limited.
	PartSize int64
	// LargeAtOnce is the number of objects that are copied in parts at the same time. PartsAtOnce is the number of
	// parts of each object that are copied at the same time.
	LargeAtOnce, PartsAtOnce int
	// Attempts is the maximum number of attempts for an object or part.
	Attempts int
	// Bandwidth limits the bytes of content per second; nil means no limit.
	Bandwidth *rate.Limiter
	// Progress is called at most once a second and at the end, never concurrently. It must return
	// quickly.
	Progress func(Progress)
	// Checkpoint is called with the position after CheckpointObjects objects or the time CheckpointEvery, and at
	// the end of each bucket. An error ends the pass.
	Checkpoint        func(Position) error
	CheckpointObjects int
	CheckpointEvery   time.Duration
	// Removed reports whether a version was removed from the source on purpose. Other versions stay on the target,
	// and [Result.Kept] names them. nil means that all removals were on purpose.
	Removed Removed
}

// Position is the progress of a pass: all objects up to it are done, in the order of buckets and keys. The zero value
// is the start.
type Position struct {
	Bucket string `json:"bucket,omitempty"`
	// Key is empty at the start of the bucket.
	Key string `json:"key,omitempty"`
	// Complete is set at the end of the bucket.
	Complete bool `json:"complete,omitempty"`
}

// Progress has the counters of a pass.
type Progress struct {
	// Seen counts the source's versions and delete markers that are equal on the target now. SeenBytes counts the
	// bytes of their content.
	Seen, SeenBytes int64
	// Copied counts versions that were stored on the target, and CopiedBytes the bytes of their content.
	Copied, CopiedBytes int64
	// Annotated counts versions whose tags, retention or legal hold were changed.
	Annotated int64
	// Removed counts versions that were removed from the target.
	Removed int64
	// Vanished counts versions that another client removed or replaced on the source before the pass copied them.
	Vanished int64
}

// Changes counts the versions that were not up to date.
func (p Progress) Changes() int64 { return p.Copied + p.Annotated + p.Removed + p.Vanished }

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	setDefault(&o.Workers, DefaultWorkers)
	setDefault(&o.PartSize, DefaultPartSize)
	setDefault(&o.LargeAtOnce, DefaultLargeAtOnce)
	setDefault(&o.PartsAtOnce, DefaultPartsAtOnce)
	setDefault(&o.Attempts, DefaultAttempts)
	setDefault(&o.CheckpointObjects, DefaultCheckpointObjects)
	setDefault(&o.CheckpointEvery, DefaultCheckpointEvery)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(Position) error { return nil }
	}
	return o
}

func setDefault[V comparable](value *V, byDefault V) {
	var zero V
	if *value == zero {
		*value = byDefault
	}
}

// Bandwidth returns a limiter for a number of bytes per second. Several passes can share it.
func Bandwidth(bytes int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(bytes), max(bytes/10, 1))
}
