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

// Options are how a pass works. Their zero value has the defaults.
type Options struct {
	// From is what an interrupted pass had reached; what comes before is not looked
	// at.
	From Position
	// Workers is how many objects are worked on at the same time. Small ones take
	// longer to ask for than to carry.
	Workers int
	// PartSize is that of the parts of what is larger than two of them. A broken
	// connection costs one part. It is at least 5 MiB, and larger for objects that
	// would need more parts than there can be.
	PartSize int64
	// LargeAtOnce and PartsAtOnce are how many objects in parts, and parts of each,
	// are carried at the same time.
	LargeAtOnce, PartsAtOnce int
	// Attempts is how often an object or part is tried.
	Attempts int
	// Bandwidth limits the bytes of content in a second; nil does not.
	Bandwidth *rate.Limiter
	// Progress is told how far the pass is, at most once a second and at the end. It
	// is not called concurrently and must not take long.
	Progress func(Progress)
	// Checkpoint is told the position each time so many objects or so much time lie
	// behind the last one, and at the end of each bucket. An error ends the pass.
	Checkpoint        func(Position) error
	CheckpointObjects int
	CheckpointEvery   time.Duration
	// Removed is what is known to be removed on purpose; nil is everything. What is not known stays on the target,
	// and is named in [Result.Kept].
	Removed Removed
}

// Position is how far a pass has come: everything up to it is done, in the order
// of buckets and keys. Its zero value is the beginning.
type Position struct {
	Bucket string `json:"bucket,omitempty"`
	// Key is empty at the beginning of the bucket.
	Key string `json:"key,omitempty"`
	// Complete is set at the end of the bucket.
	Complete bool `json:"complete,omitempty"`
}

// Progress is what a pass has done.
type Progress struct {
	// Seen counts versions and delete markers of the source that are done or were so
	// before, and SeenBytes their content.
	Seen, SeenBytes int64
	// Copied counts those that were stored, and CopiedBytes their content.
	Copied, CopiedBytes int64
	// Annotated counts those whose tags, retention or legal hold were changed.
	Annotated int64
	// Removed counts versions that were removed from the target.
	Removed int64
	// Vanished counts versions that were gone or replaced on the source before they
	// could be copied.
	Vanished int64
}

// Changes is how many versions were not as they should have been.
func (p Progress) Changes() int64 { return p.Copied + p.Annotated + p.Removed + p.Vanished }

// withDefaults fills in what is not given.
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

// Bandwidth is a limit of so many bytes in a second. Several passes can share it.
func Bandwidth(bytes int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(bytes), max(bytes/10, 1))
}
