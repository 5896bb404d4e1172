package replica_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// stuck is a source that lists one bucket until it is asked to stop.
type stuck struct {
	*s3sim.Store
	bucket string
}

func (s stuck) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	if bucket != s.bucket {
		return s.Store.Versions(ctx, bucket, after)
	}
	return func(yield func(s3.Version, error) bool) {
		<-ctx.Done()
		yield(s3.Version{}, ctx.Err())
	}
}

// TestAPassThatIsStoppedSaysByWhat: the buckets beside the one that failed end too, with
// an error that only says that they were stopped.
func TestAPassThatIsStoppedSaysByWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := stuck{s3sim.New(), "b"}, s3sim.New()
		for _, bucket := range []string{"a", "b"} {
			source.AddBucket(bucket, nil)
			source.Write(bucket, "key", "content", s3.Attributes{}, time.Now())
		}
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		killed := errors.New("killed")
		_, err := replica.Pass(t.Context(), source, target, replica.Options{
			CheckpointObjects: 2, // so that the end of the bucket is the first
			Checkpoint:        func(replica.Position) error { return killed },
		})
		if !errors.Is(err, killed) {
			t.Errorf("the pass ended with %v", err)
		}
	})
}
