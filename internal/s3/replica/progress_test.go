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
	store.Delete("bucket", "key", time.Now())
	extent, err := replica.Survey(t.Context(), store)
	if err != nil || extent.Buckets != 32 || extent.Versions != 33 || extent.Bytes != 49 {
		t.Errorf("%+v, %v", extent, err)
	}
	target := s3sim.New()
	if _, err := replica.Prepare(t.Context(), store, target); err != nil {
		t.Fatal(err)
	}
	for range 2 { // one that copies, and one that has nothing to do
		if result, err := replica.Pass(t.Context(), store, target, replica.Options{}); err != nil || result.Fingerprint != extent.Fingerprint {
			t.Errorf("a pass says %s, %v, want %s", result.Fingerprint, err, extent.Fingerprint)
		}
	}
	if copied, err := replica.Survey(t.Context(), target); err != nil || copied != extent {
		t.Errorf("the copy is %+v, %v, want %+v", copied, err, extent)
	}
}

// TestAFingerprintShowsEachChange, whatever clocks say.
func TestAFingerprintShowsEachChange(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	var v s3.Version
	store := func() *s3sim.Store {
		all := s3sim.New()
		all.AddBucket("one", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		all.AddBucket("two", nil)
		v = all.Write("one", "key", "text", s3.Attributes{}, at)
		all.Write("two", "key", "text", s3.Attributes{}, at)
		return all
	}
	of := func(all *s3sim.Store) replica.Fingerprint {
		extent, err := replica.Survey(t.Context(), all)
		if err != nil {
			t.Error(err)
		}
		return extent.Fingerprint
	}
	was := of(store())
	if was == (replica.Fingerprint{}) || of(s3sim.New()) == was {
		t.Errorf("it is %s", was)
	}
	for name, change := range map[string]func(all *s3sim.Store) error{
		"an empty bucket": func(all *s3sim.Store) error { return all.CreateBucket(t.Context(), "three", false) },
		"an older object": func(all *s3sim.Store) error {
			all.Write("two", "old", "", s3.Attributes{}, at.Add(-time.Hour))
			return nil
		},
		"another content":  func(all *s3sim.Store) error { all.Write("two", "key", "tent", s3.Attributes{}, at); return nil },
		"a delete marker":  func(all *s3sim.Store) error { all.Delete("one", "key", at); return nil },
		"a removed object": func(all *s3sim.Store) error { all.Delete("two", "key", at); return nil },
		"a tag": func(all *s3sim.Store) error {
			v.Attributes = &s3.Attributes{Tags: map[string]string{"a": "b"}}
			return all.Annotate(t.Context(), "one", v, s3.Attributes{})
		},
		"a legal hold": func(all *s3sim.Store) error {
			v.Attributes = &s3.Attributes{LegalHold: true}
			return all.Annotate(t.Context(), "one", v, s3.Attributes{})
		},
		"a move": func(all *s3sim.Store) error {
			all.Delete("two", "key", at)
			all.Write("two", "key2", "text", s3.Attributes{}, at)
			return nil
		},
	} {
		all := store()
		if err := change(all); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if of(all) == was {
			t.Errorf("%s does not show", name)
		}

	}
}
