package replica_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// counted is a store that counts how often it lists a bucket, and one object.
type counted struct {
	*s3sim.Store
	lists, objects atomic.Int64
	// silent has single objects listed as if they were not there.
	silent bool
	// fails is why single objects cannot be listed.
	fails error
}

func (c *counted) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	c.lists.Add(1)
	return c.Store.Versions(ctx, bucket, after)
}

func (c *counted) VersionsOf(ctx context.Context, bucket, key string) ([]s3.Version, error) {
	c.objects.Add(1)
	if c.silent || c.fails != nil {
		return nil, c.fails
	}
	return c.Store.VersionsOf(ctx, bucket, key)
}

// changed is a twin of which so many objects were written anew on the source, one was deleted,
// and a pass was made; source and target count from here on.
func changed(t *testing.T, objects, written int) (source, target *counted, result replica.Result) {
	t.Helper()
	one, other := twin(t, objects, "a", "b")
	for i := range written {
		one.Write("a", fmt.Sprintf("key %05d", i), "newer", s3.Attributes{}, time.Now())
	}
	one.Delete("b", "key 00000", time.Now())
	result, err := replica.Pass(t.Context(), one, other, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Store: one}, &counted{Store: other}, result
}

func TestAfterAPassOnlyWhatItChangedIsComparedAgain(t *testing.T) {
	source, target, result := changed(t, 200, 5)
	report, err := replica.CompareAfter(t.Context(), source, target, result, replica.CompareOptions{})
	if err != nil || !report.Same() || report.Versions != 5 || report.Sampled != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if source.lists.Load()+target.lists.Load() != 0 || source.objects.Load() != 6 || target.objects.Load() != 6 {
		t.Errorf("%d and %d lists, %d and %d objects", source.lists.Load(), target.lists.Load(), source.objects.Load(), target.objects.Load())
	}
}

func TestAfterAPassEverythingIsComparedIfThatIsFaster(t *testing.T) {
	for name, test := range map[string]struct{ objects, written int }{
		"most of a few were changed":         {20, 5},
		"more were changed than it can name": {26 * replica.MaxTouched, replica.MaxTouched},
	} {
		t.Run(name, func(t *testing.T) {
			source, target, result := changed(t, test.objects, test.written)
			report, err := replica.CompareAfter(t.Context(), source, target, result, replica.CompareOptions{})
			if err != nil || !report.Same() || report.Versions != int64(2*test.objects-1) || source.objects.Load() != 0 {
				t.Errorf("%d versions, %d objects, %v", report.Versions, source.objects.Load(), err)
			}
		})
	}
}

func TestAfterAPassWhatDiffersIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		change func(source, target *counted)
		is     string
	}{
		"an object that was copied lacks its content":   {func(_, to *counted) { to.Write("a", "key 00001", "spoilt", s3.Attributes{}, time.Now()) }, "a/key 00001"},
		"an object that was copied is gone":             {func(_, to *counted) { to.DeleteVersion("a", "key 00002", s3.NullVersion) }, "a/key 00002"},
		"an object that was removed is back":            {func(_, to *counted) { to.Write("b", "key 00000", "content", s3.Attributes{}, time.Now()) }, "b/key 00000"},
		"the source has another version since":          {func(from, _ *counted) { from.DeleteVersion("a", "key 00003", s3.NullVersion) }, "object a/key 00003 has 0 versions now, but had 1"},
		"neither side tells of an object that was made": {func(from, to *counted) { from.silent, to.silent = true, true }, "has 0 versions now, but had 1"},
		"a bucket is on one side":                       {func(from, _ *counted) { from.AddBucket("c", nil) }, "bucket c"},
		"a bucket with what was copied is gone":         {func(_, to *counted) { to.DropBucket("a") }, "bucket a"},
		"a setting differs": {func(_, to *counted) {
			if err := to.Set(t.Context(), "b", s3.BucketTags, "<Tagging/>"); err != nil {
				t.Error(err)
			}
		}, "setting of b"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target, result := changed(t, 200, 5)
			test.change(source, target)
			report, err := replica.CompareAfter(t.Context(), source, target, result, replica.CompareOptions{})
			var found []string
			if err != nil {
				found = append(found, err.Error())
			}
			for _, d := range report.Differences {
				found = append(found, d.Bucket+"/"+d.Key)
			}
			for _, bucket := range report.Buckets {
				found = append(found, "bucket "+bucket)
			}
			for bucket := range report.Settings {
				found = append(found, "setting of "+bucket)
			}
			if len(found) != 1 || !strings.Contains(found[0], test.is) {
				t.Errorf("found is %q", found)
			}
		})
	}
}

// TestAfterAPassThatAnObjectCannotBeListedIsAnError, also of one that is to be on neither side.
func TestAfterAPassThatAnObjectCannotBeListedIsAnError(t *testing.T) {
	for _, of := range []func(source, target *counted) *counted{
		func(source, _ *counted) *counted { return source },
		func(_, target *counted) *counted { return target },
	} {
		source, target, result := changed(t, 200, 0)
		of(source, target).fails = s3.ErrDenied
		if report, err := replica.CompareAfter(t.Context(), source, target, result, replica.CompareOptions{}); !errors.Is(err, s3.ErrDenied) {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

func TestAfterAPassTheContentOfWhatItChangedIsReadIfAskedFor(t *testing.T) {
	source, target, result := changed(t, 200, 3)
	report, err := replica.CompareAfter(t.Context(), source, target, result, replica.CompareOptions{Sample: replica.DefaultSample})
	if err != nil || report.Sampled != 3 {
		t.Errorf("%+v, %v", report, err)
	}
}

// forgetful is a store that lists an object without its attributes, and does not have it when
// it is asked for those.
type forgetful struct{ *s3sim.Store }

func (f forgetful) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		for v, err := range f.Store.Versions(ctx, bucket, after) {
			v.Attributes = nil
			if !yield(v, err) {
				return
			}
		}
	}
}

func (f forgetful) Describe(ctx context.Context, bucket string, v s3.Version) (s3.Attributes, error) {
	if v.Key == "key 00007" {
		return s3.Attributes{}, s3.ErrGone
	}
	return f.Store.Describe(ctx, bucket, v)
}

func TestWhatWentWhileAPassLookedIsComparedAgain(t *testing.T) {
	source, target := twin(t, 100, "a")
	result, err := replica.Pass(t.Context(), forgetful{source}, target, replica.Options{})
	if err != nil || result.Touched.Count != 1 || result.Touched.Objects[0] != (replica.Object{Bucket: "a", Key: "key 00007", Versions: 1}) {
		t.Errorf("%+v, %v", result, err)
	}
}
