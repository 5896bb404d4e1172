package replica_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// doubtful is a store that does not list an object that it has, and whose answers about single
// versions or settings may be errors.
type doubtful struct {
	*s3sim.Store
	unlisted                      string
	describing, settings, opening error
}

func (d *doubtful) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		for v, err := range d.Store.Versions(ctx, bucket, after) {
			if v.Key != d.unlisted && !yield(v, err) {
				return
			}
		}
	}
}

func (d *doubtful) Describe(ctx context.Context, bucket string, v s3.Version) (s3.Attributes, error) {
	if d.describing != nil {
		return s3.Attributes{}, d.describing
	}
	return d.Store.Describe(ctx, bucket, v)
}

func (d *doubtful) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	if d.opening != nil {
		return s3.Content{}, d.opening
	}
	return d.Store.Open(ctx, bucket, v, offset, length)
}

func (d *doubtful) Settings(ctx context.Context, bucket string) (s3.Settings, error) {
	if d.settings != nil {
		return nil, d.settings
	}
	return d.Store.Settings(ctx, bucket)
}

var errDoubt = errors.New("the server has no answer")

// TestWhatAListLeavesOutIsNotRemovedIfItIsThere, nor if nobody says whether it is.
func TestWhatAListLeavesOutIsNotRemovedIfItIsThere(t *testing.T) {
	for _, fails := range []error{nil, errDoubt} {
		from, target := twin(t, 3, "a")
		source := &doubtful{Store: from, unlisted: "key 00001", describing: fails}
		result, err := replica.Pass(t.Context(), source, target, replica.Options{Attempts: 1})
		if !errors.Is(err, fails) || result.Removed != 0 || fails == nil && result.Vanished != 1 {
			t.Errorf("%+v, %v; want %v", result.Progress, err, fails)
		}
		if left, err := target.VersionsOf(t.Context(), "a", "key 00001"); err != nil || len(left) != 1 {
			t.Errorf("%d versions are left, %v", len(left), err)
		}
	}
}

// TestSettingsThatCannotBeReadAreNotTheSame, on whichever side.
func TestSettingsThatCannotBeReadAreNotTheSame(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		from, to := twin(t, 1, "a")
		source, target := &doubtful{Store: from}, &doubtful{Store: to}
		map[string]*doubtful{"source": source, "target": target}[side].settings = errDoubt
		if report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{}); !errors.Is(err, errDoubt) {
			t.Errorf("%s: %+v, %v", side, report, err)
		}
		if _, err := replica.Prepare(t.Context(), source, target); !errors.Is(err, errDoubt) {
			t.Errorf("prepare of %s: %v", side, err)
		}
	}
}

// TestContentThatCannotBeReadIsNotTheSame, on whichever side; what is gone from the target differs.
func TestContentThatCannotBeReadIsNotTheSame(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		for _, fails := range []error{errDoubt, s3.ErrGone} {
			from, to := twin(t, 1, "a")
			source, target := &doubtful{Store: from}, &doubtful{Store: to}
			map[string]*doubtful{"source": source, "target": target}[side].opening = fails
			report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Sample: replica.DefaultSample})
			differs := 0
			if side == "target" && fails == s3.ErrGone { //nolint:errorlint // which of them it is
				differs = 1
			}
			if fails == errDoubt && !errors.Is(err, errDoubt) || fails != errDoubt && (err != nil || report.Count != differs) { //nolint:errorlint // as above
				t.Errorf("%s, %v: %+v, %v", side, fails, report, err)
			}
		}
	}
}

// picky is a target that answers the change of a setting with an error.
type picky struct {
	*s3sim.Store
	err error
}

func (p picky) Set(context.Context, string, s3.SettingName, string) error { return p.err }

type refusal struct{ error }

func (refusal) Reason() string { return "it is malformed" }

// TestASettingThatIsNotSetIsAWarningOnlyIfItIsRefused: what failed by chance is tried again, and
// who reads the warning takes the rest for carried over.
func TestASettingThatIsNotSetIsAWarningOnlyIfItIsRefused(t *testing.T) {
	for want, err := range map[string]error{
		"the tags of bucket a (" + s3.BucketTags.Mark("<Tagging/>") + ") cannot be carried over: the target does not offer it": s3.ErrNotOffered,
		"the tags of bucket a (" + s3.BucketTags.Mark("<Tagging/>") + ") cannot be carried over: it is malformed":              refusal{errDoubt},
		"": errDoubt,
	} {
		source, target := twin(t, 1, "a")
		if err := source.Set(t.Context(), "a", s3.BucketTags, "<Tagging/>"); err != nil {
			t.Fatal(err)
		}
		warnings, got := replica.Prepare(t.Context(), source, picky{target, err})
		if want == "" {
			if !errors.Is(got, errDoubt) {
				t.Errorf("warned of %v, %v", warnings, got)
			}
			continue
		}
		if got != nil || len(warnings) != 1 || warnings[0].String() != want {
			t.Errorf("warned of %v, %v; want %s", warnings, got, want)
		}
	}
}

// broken is content of which the end cannot be read for some times.
type broken struct {
	*s3sim.Store
	breaks int
}

func (b *broken) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	content, err := b.Store.Open(ctx, bucket, v, offset, length)
	if b.breaks > 0 && err == nil {
		b.breaks--
		content.ReadCloser = io.NopCloser(io.MultiReader(io.LimitReader(content, length/2), iotest.ErrReader(errDoubt)))
	}
	return content, err
}

// TestACopyStaysUntilTheSourcesContentWasRead: a client rewrote only the metadata, so the copy may be the last one.
func TestACopyStaysUntilTheSourcesContentWasRead(t *testing.T) {
	for name, test := range map[string]struct {
		etag       string // instead of the checksum
		encryption s3.Encryption
		partSize   int64
		removes    int
	}{
		"whole":         {removes: 0},
		"no checksum":   {etag: strings.Repeat("e", 32), encryption: s3.SSES3, removes: 1},
		"in parts":      {partSize: 5, removes: 1},
		"in one of two": {etag: "e-2", encryption: s3.SSES3, removes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := &broken{Store: s3sim.New()}, s3sim.New()
			source.AddBucket("bucket", nil)
			v := source.Write("bucket", "key", "the whole content", s3.Attributes{}, time.Now())
			write := func(value string, at time.Time) {
				if v.Modified = at; test.etag != "" {
					v.ETag = test.etag
				}
				v.Attributes = &s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": value}, Encryption: test.encryption}
				source.DeleteVersion("bucket", "key", v.ID)
				if err := source.Put(t.Context(), "bucket", v, nil, strings.NewReader("the whole content"), true); err != nil {
					t.Fatal(err)
				}
			}
			write("first", time.Now())
			if _, err := replica.Prepare(t.Context(), source, target); err != nil {
				t.Fatal(err)
			}
			options := replica.Options{PartSize: test.partSize, Attempts: 3}
			if _, err := replica.Pass(t.Context(), source, target, options); err != nil {
				t.Fatal(err)
			}
			before := target.Dump()
			write("second", time.Now().Add(time.Minute))
			source.breaks = options.Attempts
			if _, err := replica.Pass(t.Context(), source, target, options); !errors.Is(err, errDoubt) || target.Dump() != before {
				t.Errorf("%v, and the target has\n%s", err, target.Dump())
			}
			source.breaks = 1
			if _, err := replica.Pass(t.Context(), source, target, options); err != nil || target.Dump() != source.Dump() || target.Count("remove bucket/key") != test.removes {
				t.Errorf("%v, %d removed, and the target has\n%s", err, target.Count("remove bucket/key"), target.Dump())
			}
		})
	}
}

// TestWhatIsStoredReplacesOnlyWhatWasSeen: a client may write to the target while a request is on its way.
func TestWhatIsStoredReplacesOnlyWhatWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		effect string
		there  bool
	}{
		"new":               {effect: "put bucket/key"},
		"newer":             {effect: "put bucket/key", there: true},
		"removed meanwhile": {effect: "put bucket/key", there: true},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := s3sim.New(), s3sim.New()
			source.AddBucket("bucket", nil)
			target.AddBucket("bucket", nil)
			if test.there {
				target.Write("bucket", "key", "first", s3.Attributes{}, time.Now().Add(-time.Hour))
			}
			source.Write("bucket", "key", "second", s3.Attributes{}, time.Now())
			target.BeforeEffect = func(effect string) {
				if effect != test.effect {
					return
				}
				if target.Delete("bucket", "key", time.Now()); name != "removed meanwhile" {
					target.Write("bucket", "key", "a client's", s3.Attributes{}, time.Now())
				}
			}
			_, err := replica.Pass(t.Context(), source, target, replica.Options{})
			has := target.Dump()
			if err != nil || target.Count("remove bucket/key") != 0 || strings.Contains(has, "second") || strings.Contains(has, "a client's") != (name != "removed meanwhile") {
				t.Errorf("%v, and the target has\n%s", err, has)
			}
			target.BeforeEffect = nil
			if _, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil || target.Dump() != source.Dump() {
				t.Errorf("%v, and after another pass the target has\n%s", err, target.Dump())
			}
		})
	}
}

// failing is a target that fails to change a version in place, or to remove one, for the first time.
type failing struct {
	*s3sim.Store
	failed sync.Map // by the name of the request; a pass makes several at once
}

func (f *failing) fails(what string) error {
	if _, before := f.failed.LoadOrStore(what, true); before {
		return nil
	}
	return errDoubt
}

func (f *failing) hasFailed(what string) bool {
	_, failed := f.failed.Load(what)
	return failed
}

func (f *failing) Annotate(ctx context.Context, bucket string, v s3.Version, old s3.Attributes) error {
	if err := f.fails("annotate"); err != nil {
		return err
	}
	return f.Store.Annotate(ctx, bucket, v, old)
}

func (f *failing) Remove(ctx context.Context, bucket string, v s3.Version) error {
	if err := f.fails("remove"); err != nil {
		return err
	}
	return f.Store.Remove(ctx, bucket, v)
}

// TestWhatFailsOnceIsTriedAgain, also what a client sends only once.
func TestWhatFailsOnceIsTriedAgain(t *testing.T) {
	source, to := twin(t, 1, "a")
	target := &failing{Store: to}
	target.Write("a", "surplus", "text", s3.Attributes{}, time.Now())
	versions, err := source.VersionsOf(t.Context(), "a", "key 00000")
	if err != nil || len(versions) != 1 {
		t.Fatal(versions, err)
	}
	v := versions[0]
	v.Attributes = &s3.Attributes{Tags: map[string]string{"a": "b"}}
	if err := source.Annotate(t.Context(), "a", v, s3.Attributes{}); err != nil {
		t.Fatal(err)
	}
	result, err := replica.Pass(t.Context(), source, target, replica.Options{Attempts: 2})
	if err != nil || result.Annotated != 1 || result.Removed != 1 || !target.hasFailed("annotate") || !target.hasFailed("remove") || to.Dump() != source.Dump() {
		t.Errorf("%v, %+v, and the target has\n%s", err, result.Progress, to.Dump())
	}
}
