package replica_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// TestWhatIsNotKnownToBeRemovedStays: the source may have lost it.
func TestWhatIsNotKnownToBeRemovedStays(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", nil)
		for _, key := range []string{"stays", "removed", "lost"} {
			store.Write("bucket", key, "text", s3.Attributes{}, at)
		}
	}
	for _, bucket := range []string{"dropped", "gone"} {
		target.AddBucket(bucket, nil)
		target.Write(bucket, "key", "text", s3.Attributes{}, at)
	}
	source.Write("bucket", "older", "before", s3.Attributes{}, at)
	target.Write("bucket", "older", "after", s3.Attributes{}, at.Add(time.Minute))
	source.Write("bucket", "a copy", "text", s3.Attributes{}, at)
	target.Write("bucket", "a copy", "text", s3.Attributes{}, at.Add(time.Minute)) // as an older EKCO copied it
	source.Delete("bucket", "removed", at)
	source.Lose("bucket", "lost", s3.NullVersion)
	removed := func(bucket string, v s3.Version) bool { return bucket == "dropped" || v.Key == "removed" }
	report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Removed: removed})
	if err != nil || !slices.Equal(report.Buckets, []string{"dropped"}) || report.Count != 2 {
		t.Errorf("before the pass: %v, %v, %+v", err, report.Buckets, report.Differences)
	}
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: removed})
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, item := range result.Kept.Items {
		kept = append(kept, untimed([]string{item.String()})[0])
	}
	slices.Sort(kept)
	if want := []string{"bucket gone", "object bucket/lost (null)", "object bucket/older (null)", "object gone/key (null)"}; !slices.Equal(kept, want) || result.Kept.Count != len(want) || result.Removed != 2 {
		t.Errorf("%d kept: %q, want %q; %d removed", result.Kept.Count, kept, want, result.Removed)
	}
	has := target.Dump()
	if strings.Contains(has, "dropped") || strings.Contains(has, `"removed"`) || !strings.Contains(has, `"after"`) || !strings.Contains(has, `"lost"`) {
		t.Errorf("the target has\n%s", has)
	}
	if report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Removed: removed}); err != nil || !report.Same() {
		t.Errorf("what is kept differs: %v, %+v", err, report)
	}
	if report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{}); err != nil || report.Count != 2 || len(report.Buckets) != 1 {
		t.Errorf("it is not told where everything counts: %v, %+v", err, report)
	}
}

// TestAMarkerThatHidesNothingIsRemoved, as lifecycles do on the source, and no event tells. One that hides a version
// stays: without it clients would see again what they deleted.
func TestAMarkerThatHidesNothingIsRemoved(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	}
	target.Delete("bucket", "alone", at)
	source.Write("bucket", "hidden", "text", s3.Attributes{}, at)
	target.Write("bucket", "other", "text", s3.Attributes{}, at)
	target.Delete("bucket", "other", at.Add(time.Minute))
	target.Delete("bucket", "hidden", at.Add(time.Minute))
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: func(string, s3.Version) bool { return false }})
	if has := target.Dump(); err != nil || result.Removed != 1 || result.Kept.Count != 3 || strings.Contains(has, "alone") || strings.Count(has, "deleted") != 2 {
		t.Errorf("%v: %d removed, %d kept\n%s", err, result.Removed, result.Kept.Count, has)
	}
}

// TestAnEmptyVersionIsACopyOnlyWithItsAttributes: the content of all that is empty is the same.
func TestAnEmptyVersionIsACopyOnlyWithItsAttributes(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	source.AddBucket("bucket", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	target.AddBucket("bucket", nil)
	one := s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": "1"}}
	for key, test := range map[string]struct {
		content string
		of      s3.Attributes
	}{"copy": {"", one}, "other": {"", s3.Attributes{}}, "not empty": {"text", s3.Attributes{}}} {
		source.Write("bucket", key, test.content, one, at)
		target.Write("bucket", key, test.content, test.of, at)
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	if found, err := replica.Foreign(t.Context(), target, source, time.Time{}); err != nil || found.Count != 1 {
		t.Errorf("%v: foreign are %q", err, found.First)
	}
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: func(string, s3.Version) bool { return false }})
	if err != nil || result.Kept.Count != 1 || result.Kept.Items[0].Key != "other" || result.Removed != 2 {
		t.Errorf("%v, %+v", err, result)
	}
}

// TestALockedVersionIsNamed: the target does not remove it.
func TestALockedVersionIsNamed(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", nil)
	target.AddBucket("bucket", nil)
	locked := replica.Item{Bucket: "bucket", Version: target.Write("bucket", "locked", "text", s3.Attributes{LegalHold: true}, time.Now())}
	target.Write("bucket", "other", "text", s3.Attributes{}, time.Now())
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: func(string, s3.Version) bool { return true }})
	if has := target.Dump(); err != nil || result.Removed != 1 || !slices.Equal(result.NotCarried.First, []string{locked.String()}) || !strings.Contains(has, "locked") {
		t.Errorf("%v, %+v, and the target has\n%s", err, result, has)
	}
}

// TestARetentionThatIsOverIsStoredWithItsVersion: a client shortened it, and servers set none that is over.
func TestARetentionThatIsOverIsStoredWithItsVersion(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	until := func(in time.Duration) s3.Attributes {
		return s3.Attributes{Retention: &s3.Retention{Mode: "GOVERNANCE", Until: time.Now().Add(in)}}
	}
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", nil)
	}
	source.Write("bucket", "over", "text", until(-time.Minute), at)
	target.Write("bucket", "over", "text", until(time.Hour), at)
	source.Write("bucket", "lasts", "text", until(time.Minute), at)
	target.Write("bucket", "lasts", "text", until(time.Hour), at)
	tagged := until(-time.Minute)
	target.Write("bucket", "tagged", "text", tagged, at)
	tagged.Tags = map[string]string{"a": "b"}
	source.Write("bucket", "tagged", "text", tagged, at)
	if _, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil || target.Dump() != source.Dump() {
		t.Errorf("%v, and the target has\n%s", err, target.Dump())
	}
	if target.Count("put bucket/over") != 1 || target.Count("annotate bucket/lasts") != 1 || target.Count("put bucket/lasts") != 0 || target.Count("annotate bucket/tagged") != 1 {
		t.Errorf("it was changed by %v", target.Effects())
	}
}

// TestWhatAnOlderVersionWouldReplaceStays, also where the ETag tells no difference: it may be of parts, or none.
func TestWhatAnOlderVersionWouldReplaceStays(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	put := func(store *s3sim.Store, v s3.Version) {
		t.Helper()
		v.ID, v.Attributes = s3.NullVersion, &s3.Attributes{}
		err := store.Put(t.Context(), "bucket", v, nil, strings.NewReader(strings.Repeat("x", int(v.Size))), true)
		if v.DeleteMarker {
			err = store.PutMarker(t.Context(), "bucket", v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", nil)
	}
	put(source, s3.Version{Key: "size", ETag: "the same", Size: 1, Modified: at})
	put(target, s3.Version{Key: "size", ETag: "the same", Size: 2, Modified: at.Add(time.Minute)})
	put(source, s3.Version{Key: "marker", Modified: at})
	put(target, s3.Version{Key: "marker", DeleteMarker: true, Modified: at.Add(time.Minute)})
	before := target.Dump()
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Removed: func(string, s3.Version) bool { return false }})
	if has := target.Dump(); err != nil || result.Kept.Count != 2 || has != before {
		t.Errorf("%v: %d kept\n%s, want\n%s", err, result.Kept.Count, has, before)
	}
}

// TestAMarkerAndAVersionOfTheSameIDReplaceEachOther: servers do not store one in place of the other.
func TestAMarkerAndAVersionOfTheSameIDReplaceEachOther(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	at := time.Now().Add(-time.Hour)
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", s3.Settings{s3.Versioning: "<Status>Suspended</Status>"})
	}
	target.Delete("bucket", "written", at)
	source.Write("bucket", "written", "text", s3.Attributes{}, at.Add(time.Minute))
	target.Write("bucket", "deleted", "text", s3.Attributes{}, at)
	source.Delete("bucket", "deleted", at.Add(time.Minute))
	if _, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil || target.Dump() != source.Dump() {
		t.Errorf("%v, and the target has\n%s", err, target.Dump())
	}
	if target.Count("remove bucket/written") != 1 || target.Count("remove bucket/deleted") != 1 {
		t.Errorf("it was changed by %v", target.Effects())
	}
}

// TestACopyWithMoreThanTheSourceStays: clients may have stored a content again with other metadata, under another id.
func TestACopyWithMoreThanTheSourceStays(t *testing.T) {
	for tag, want := range map[string]int{"": 0, "1": 1} {
		source, target := s3sim.New(), s3sim.New()
		at := time.Now().Add(-time.Hour)
		source.AddBucket("b", nil)
		old := s3.Attributes{}
		if tag != "" {
			old.Tags = map[string]string{"n": tag}
		}
		source.Write("b", "k", "text", old, at)
		if err := source.Set(t.Context(), "b", s3.Versioning, s3.VersioningEnabled); err != nil {
			t.Fatal(err)
		}
		source.Write("b", "k", "text", s3.Attributes{Headers: map[string]string{"Content-Type": "text/csv"}}, at.Add(time.Minute))
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		options := replica.Options{Removed: func(string, s3.Version) bool { return false }}
		if _, err := replica.Pass(t.Context(), source, target, options); err != nil {
			t.Fatal(err)
		}
		source.Lose("b", "k", s3.NullVersion)
		result, err := replica.Pass(t.Context(), source, target, options)
		if err != nil || result.Kept.Count != want || result.Removed != int64(1-want) {
			t.Errorf("with tag %q: %v, kept %+v, removed %d", tag, err, result.Kept, result.Removed)
		}
	}
}
