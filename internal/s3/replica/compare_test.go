package replica_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// reticent is a store whose lists do not tell the attributes of objects in some
// bucket, and that counts what it is asked for.
type reticent struct {
	*s3sim.Store
	silent        string
	asked, opened atomic.Int64
}

func (r *reticent) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		for v, err := range r.Store.Versions(ctx, bucket, after) {
			if bucket == r.silent {
				v.Attributes = nil
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

func (r *reticent) Describe(ctx context.Context, bucket string, v s3.Version) (s3.Attributes, error) {
	r.asked.Add(1)
	return r.Store.Describe(ctx, bucket, v)
}

func (r *reticent) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	r.opened.Add(1)
	return r.Store.Open(ctx, bucket, v, offset, length)
}

// twin is the same objects on two sides.
func twin(t *testing.T, objects int, buckets ...string) (source, target *s3sim.Store) {
	t.Helper()
	source, target = s3sim.New(), s3sim.New()
	for _, bucket := range buckets {
		source.AddBucket(bucket, nil)
		for i := range objects {
			attributes := s3.Attributes{Headers: map[string]string{"X-Amz-Meta-Number": fmt.Sprint(i)}}
			source.Write(bucket, fmt.Sprintf("key %05d", i), "content", attributes, time.Now())
		}
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil {
		t.Fatal(err)
	}
	return source, target
}

func TestOnlyWhatListsDoNotTellIsAskedForAndManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := twin(t, 100, "silent", "told")
		source, target := &reticent{Store: from, silent: "silent"}, &reticent{Store: to}
		from.SetLatency(time.Second)
		to.SetLatency(time.Second)
		began := time.Now()
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{})
		if err != nil || !report.Same() || report.Versions != 200 {
			t.Fatalf("%+v, %v", report, err)
		}
		if source.asked.Load() != 100 || target.asked.Load() != 0 || source.opened.Load() != 0 {
			t.Errorf("asked for %d and %d versions", source.asked.Load(), target.asked.Load())
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("100 answers of a second took %s", took)
		}
	})
}

func TestHowFarAComparisonIsIsToldOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := twin(t, 100, "silent")
		source := &reticent{Store: from, silent: "silent"}
		from.SetLatency(500 * time.Millisecond)
		var told []int64
		began, last := time.Now(), time.Now()
		report, err := replica.Compare(t.Context(), source, to, replica.CompareOptions{Progress: func(versions int64) {
			if told = append(told, versions); time.Since(last) < time.Second {
				t.Errorf("told %s after the last time", time.Since(last))
			}
			last = time.Now()
		}})
		if err != nil || report.Versions != 100 {
			t.Fatalf("%+v, %v", report, err)
		}
		if len(told) < 2 || !slices.IsSorted(told) || told[0] == 0 || told[len(told)-1] > 100 {
			t.Errorf("in %s %d was told", time.Since(began), told)
		}
	})
}

func TestBucketsAndBothSidesAreComparedAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, target := twin(t, 1, "a", "b", "c", "d", "e", "f", "g", "h")
		source.SetLatency(time.Second)
		target.SetLatency(time.Second)
		began := time.Now()
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{})
		if err != nil || !report.Same() {
			t.Fatalf("%+v, %v", report, err)
		}
		// Two for the names of the buckets, and twice four of them.
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("eight buckets took %s", took)
		}
	})
}

func TestTheSampleIsLimitedInObjectsToo(t *testing.T) {
	from, to := twin(t, 12_000, "bucket")
	source := &reticent{Store: from}
	report, err := replica.Compare(t.Context(), source, to, replica.CompareOptions{Sample: replica.DefaultSample})
	if err != nil || !report.Same() || report.Sampled != replica.MaxSampled || source.opened.Load() != replica.MaxSampled || source.asked.Load() != 0 {
		t.Errorf("%+v, %v; opened %d, asked %d", report, err, source.opened.Load(), source.asked.Load())
	}
}

func TestManyLargeVersionsOfOneObjectAreCopiedAndCompared(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	for i := range 400 {
		attributes := s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": fmt.Sprint(i, strings.Repeat("x", 16<<10))}}
		source.Write("bucket", "key", "content", attributes, time.Unix(int64(i), 0))
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	asking := &reticent{Store: source}
	if result, err := replica.Pass(t.Context(), asking, target, replica.Options{}); err != nil || result.Copied != 400 {
		t.Fatalf("%+v, %v", result, err)
	}
	if asked := asking.asked.Load(); asked < 100 || asked > 300 {
		t.Errorf("of 400 versions %d had to be asked for", asked)
	}
	report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{})
	if err != nil || !report.Same() || report.Versions != 400 || source.Dump() != target.Dump() {
		t.Errorf("%d differ, %v", report.Count, err)
	}
}

func TestADefectMetByAComparisonReachesTheCaller(t *testing.T) {
	source, target := twin(t, 10, "a", "b")
	for _, listing := range []bool{false, true} {
		caught := parallel.Catch(func() {
			report, err := replica.Compare(t.Context(), &defective{source, listing}, target, replica.CompareOptions{Sample: replica.DefaultSample})
			t.Errorf("it ended with %+v, %v", report, err)
		})
		if caught == nil || caught.Value != "a defect" {
			t.Errorf("caught %v", caught)
		}
	}
}

func TestAnErrorEndsAComparison(t *testing.T) {
	source, target := twin(t, 10, "a", "b")
	_, err := replica.Compare(t.Context(), source, &unordered{target}, replica.CompareOptions{})
	if err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("error %v", err)
	}
	target.SetDown(true)
	if _, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{}); !errors.Is(err, s3sim.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// TestWhatACopyLacksBesidesItsContentIsTold, whenever it was made; another content, or another time alone, is not.
func TestWhatACopyLacksBesidesItsContentIsTold(t *testing.T) {
	source, target := twin(t, 3, "a")
	now := time.Now()
	for key, content := range map[string]string{"key 00000": "content", "key 00001": "newer!!"} {
		target.Write("a", key, content, s3.Attributes{}, now.Add(time.Minute))
	}
	target.Write("a", "key 00002", "content", s3.Attributes{Headers: map[string]string{"X-Amz-Meta-Number": "2"}}, now.Add(time.Minute))
	for sameTime, want := range map[bool]int{false: 1, true: 0} {
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{OnlyAttributes: true, SameTime: sameTime})
		if err != nil || report.Count != want || want > 0 && (report.Differences[0].Key != "key 00000" || !slices.Contains(report.Differences[0].Aspects, replica.Metadata)) {
			t.Errorf("of the same time %t: %+v, %v", sameTime, report.Differences, err)
		}
	}
}
