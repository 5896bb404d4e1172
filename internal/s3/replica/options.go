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

// Options of a sync pass. The zero value has the defaults.
type Options struct {
	// From is the position that an interrupted pass had reached. The pass skips everything before
	// it.
	From Position
	// Workers is how many objects are copied at the same time. The time for a small object is
	// mostly waiting.
	Workers int
	// PartSize is the size of parts; objects larger than two parts are copied in parts. A broken
	// connection costs one part. It is at least 5 MiB, and larger for objects that would need more
	// parts than the maximum.
	PartSize int64
	// LargeAtOnce is how many objects in parts are copied at the same time, PartsAtOnce how many
	// parts of each.
	LargeAtOnce, PartsAtOnce int
	// Attempts is how often an object or part is tried.
	Attempts int
	// Bandwidth limits the bytes of content in a second; nil is no limit.
	Bandwidth *rate.Limiter
	// Progress is called at most once a second and at the end, never concurrently. It must return
	// quickly.
	Progress func(Progress)
	// Checkpoint is called with the position after every CheckpointObjects or CheckpointEvery, and
	// at the end of each bucket. An error ends the pass.
	Checkpoint        func(Position) error
	CheckpointObjects int
	CheckpointEvery   time.Duration
	// Removed says what was removed from the source on purpose; nil is everything. Anything else
	// stays on the target, and [Result.Kept] names it.
	Removed Removed
}

// Position is the progress of a pass: everything up to it is done, in the order of buckets and
// keys. Its zero value is the start.
type Position struct {
	Bucket string `json:"bucket,omitempty"`
	// Key is empty at the start of the bucket.
	Key string `json:"key,omitempty"`
	// Complete is set at the end of the bucket.
	Complete bool `json:"complete,omitempty"`
}

// Progress is what a pass has done.
type Progress struct {
	// Seen counts versions and delete markers of the source that are done, or were so before the
	// pass, and SeenBytes their content.
	Seen, SeenBytes int64
	// Copied counts stored versions, and CopiedBytes their content.
	Copied, CopiedBytes int64
	// Annotated counts versions whose tags, retention or legal hold were changed.
	Annotated int64
	// Removed counts versions that were removed from the target.
	Removed int64
	// Vanished counts versions that were removed or replaced on the source before they could be
	// copied.
	Vanished int64
}

// Changes counts the versions that were not up to date.
func (p Progress) Changes() int64 { return p.Copied + p.Annotated + p.Removed + p.Vanished }

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	set(&o.Workers, DefaultWorkers)
	set(&o.PartSize, DefaultPartSize)
	set(&o.LargeAtOnce, DefaultLargeAtOnce)
	set(&o.PartsAtOnce, DefaultPartsAtOnce)
	set(&o.Attempts, DefaultAttempts)
	set(&o.CheckpointObjects, DefaultCheckpointObjects)
	set(&o.CheckpointEvery, DefaultCheckpointEvery)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(Position) error { return nil }
	}
	return o
}

func set[V comparable](value *V, byDefault V) {
	var zero V
	if *value == zero {
		*value = byDefault
	}
}

// Bandwidth returns a limit of so many bytes in a second. Several passes can share it.
func Bandwidth(bytes int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(bytes), max(bytes/10, 1))
}
