package replica_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

func TestProgressIsToldOnceASecondAndAtTheEndAndPositionsByTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := s3sim.New(), s3sim.New()
		source.AddBucket("bucket", nil)
		for i := range 200 {
			source.Write("bucket", fmt.Sprintf("key %03d", i), "content", s3.Attributes{}, time.Now())
		}
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		target.SetLatency(time.Second)
		var told []replica.Progress
		var reached []replica.Position
		began := time.Now()
		result, err := replica.Pass(t.Context(), source, target, replica.Options{
			Workers:    1,
			Progress:   func(p replica.Progress) { told = append(told, p) },
			Checkpoint: func(at replica.Position) error { reached = append(reached, at); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if len(told) < 200 || told[len(told)-1] != result.Progress || result.SeenBytes != 1400 || result.CopiedBytes != 1400 {
			t.Errorf("told %d times in %s, at last %+v", len(told), took, told[len(told)-1])
		}
		if minutes := int(took / time.Minute); len(reached) != minutes+1 || !reached[len(reached)-1].Complete {
			t.Errorf("in %s these positions were told: %+v", took, reached)
		}
	})
}

func TestASurveyCountsAllVersions(t *testing.T) {
	store := s3sim.New()
	store.AddBucket("bucket", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	store.AddBucket("empty", nil)
	store.Write("bucket", "key", "content", s3.Attributes{}, time.Now())
	store.Write("bucket", "key", "more content", s3.Attributes{}, time.Now())
	for i := range 30 { // whichever is listed last
		store.AddBucket(fmt.Sprint("old-", i), nil)
		store.Write(fmt.Sprint("old-", i), "key", "x", s3.Attributes{}, time.Now().Add(-time.Hour))
	}
	newest := time.Now().Add(time.Minute).Truncate(time.Millisecond).UTC()
	store.Delete("bucket", "key", newest)
	if extent, err := replica.Survey(t.Context(), store); err != nil || extent != (replica.Extent{Buckets: 32, Versions: 33, Bytes: 49, Newest: newest}) {
		t.Errorf("%+v, %v", extent, err)
	}
	target := s3sim.New()
	if _, err := replica.Prepare(t.Context(), store, target); err != nil {
		t.Fatal(err)
	}
	if result, err := replica.Pass(t.Context(), store, target, replica.Options{}); err != nil || !result.Newest.Equal(newest) {
		t.Errorf("a pass says %s, %v", result.Newest, err)
	}
	// Of an empty store it is known, too.
	if extent, err := replica.Survey(t.Context(), s3sim.New()); err != nil || extent.Newest.IsZero() {
		t.Errorf("of an empty store: %+v, %v", extent, err)
	}
	if result, err := replica.Pass(t.Context(), s3sim.New(), s3sim.New(), replica.Options{}); err != nil || result.Newest.IsZero() {
		t.Errorf("a pass of an empty store: %+v, %v", result, err)
	}
}
