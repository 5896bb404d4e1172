package replica_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/internal/parallel"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

const suspended = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"

// application uses a store at random. Its clock stands still at times, so that
// versions have the same one.
type application struct {
	t     *rapid.T
	store *s3sim.Store
	now   time.Time
}

func (a *application) work(steps int) {
	for range steps {
		a.now = a.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(a.t, "milliseconds")) * time.Millisecond)
		bucket := rapid.SampledFrom([]string{"plain", "suspended", "versioned"}).Draw(a.t, "bucket")
		key := rapid.SampledFrom([]string{"a", "a/b", "a-b", "ä", "z", "é", "0/"}).Draw(a.t, "key")
		switch rapid.IntRange(0, 5).Draw(a.t, "what") {
		case 0:
			a.store.Delete(bucket, key, a.now)
		case 1:
			a.retag(bucket, key)
		case 2:
			a.removeOne(bucket, key)
		default:
			content := strings.Repeat("x", rapid.IntRange(0, 40).Draw(a.t, "size"))
			a.store.Write(bucket, key, content, s3.Attributes{
				Headers: map[string]string{"Content-Type": rapid.SampledFrom([]string{"a", "b"}).Draw(a.t, "type")},
				Expires: rapid.SampledFrom([]string{"", "0"}).Draw(a.t, "expires"),
			}, a.now)
		}
	}
}

// versions lists what there is of an object.
func (a *application) versions(bucket, key string) (versions []s3.Version) {
	for v, err := range a.store.Versions(context.Background(), bucket, "") {
		if err != nil {
			a.t.Fatal(err)
		}
		if v.Key == key {
			versions = append(versions, v)
		}
	}
	return versions
}

func (a *application) retag(bucket, key string) {
	for _, v := range a.versions(bucket, key) {
		if v.DeleteMarker {
			continue
		}
		v.Attributes.Tags = map[string]string{"tag": rapid.SampledFrom([]string{"1", "2"}).Draw(a.t, "tag")}
		if err := a.store.Annotate(context.Background(), bucket, v, s3.Attributes{}); err != nil {
			a.t.Fatal(err)
		}
		return
	}
}

func (a *application) removeOne(bucket, key string) {
	if versions := a.versions(bucket, key); len(versions) > 0 {
		a.store.DeleteVersion(bucket, key, rapid.SampledFrom(versions).Draw(a.t, "version").ID)
	}
}

var errKilled = errors.New("killed")

// interrupted makes a pass that is killed after a random number of effects, and
// goes on from where the one before it was.
func interrupted(t *rapid.T, source, target *s3sim.Store, from replica.Position) replica.Position {
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	left := rapid.IntRange(0, 12).Draw(t, "effects until the kill")
	target.BeforeEffect = func(string) {
		if left--; left < 0 {
			kill(errKilled)
		}
	}
	defer func() { target.BeforeEffect = nil }()
	_, err := replica.Pass(ctx, source, target, replica.Options{
		From: from, Workers: 1, PartSize: 8, PartsAtOnce: 1, CheckpointObjects: 2,
		Checkpoint: func(at replica.Position) error { from = at; return nil },
	})
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	if err == nil {
		return replica.Position{}
	}
	return from
}

func TestHoweverASourceIsUsedAndAPassKilledTheLastPassMakesBothTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, target := s3sim.New(), s3sim.New()
		source.AddBucket("plain", nil)
		source.AddBucket("suspended", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		source.AddBucket("versioned", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		app := &application{t: t, store: source, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		app.work(20)
		if err := source.Set(t.Context(), "suspended", s3.Versioning, suspended); err != nil {
			t.Fatal(err)
		}
		var from replica.Position
		for range 4 {
			app.work(rapid.IntRange(0, 10).Draw(t, "steps"))
			if _, err := replica.Prepare(t.Context(), source, target); err != nil {
				t.Fatal(err)
			}
			from = interrupted(t, source, target, from)
			// What is written after a pass is newer than what it copied, also where the clock
			// stands still for a while.
			app.now = app.now.Add(time.Millisecond)
		}
		if _, err := replica.Pass(t.Context(), source, target, replica.Options{PartSize: 8}); err != nil {
			t.Fatal(err)
		}
		report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Sample: replica.DefaultSample})
		if err != nil || !report.Same() {
			t.Fatalf("compare: %+v, %v", report, err)
		}
		if warnings, err := replica.Settle(t.Context(), source, target); err != nil || len(warnings) > 0 {
			t.Fatalf("settle: %v, %v", warnings, err)
		}
		if ours, theirs := target.Dump(), source.Dump(); ours != theirs {
			t.Fatalf("the target has\n%s\ninstead of\n%s", ours, theirs)
		}
	})
}

func TestPositionsOnlyCoverWhatIsDone(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", nil)
	for i := range 500 {
		source.Write("bucket", fmt.Sprintf("key %03d", i), "content", s3.Attributes{}, time.Now())
	}
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	told, last := 0, ""
	_, err := replica.Pass(t.Context(), source, target, replica.Options{Workers: 8, CheckpointObjects: 7, Checkpoint: func(at replica.Position) error {
		told++
		if at.Complete {
			return nil
		}
		if at.Key <= last {
			t.Errorf("position %q after %q", at.Key, last)
		}
		last = at.Key
		there := make(map[string]bool)
		for v, err := range target.Versions(t.Context(), "bucket", "") {
			if err != nil {
				return err
			}
			there[v.Key] = true
		}
		for i := range 500 {
			if key := fmt.Sprintf("key %03d", i); key <= at.Key && !there[key] {
				t.Errorf("at position %q %q is missing", at.Key, key)
			}
		}
		return nil
	}})
	if err != nil || told < 2 {
		t.Errorf("%d positions, %v", told, err)
	}
}

func TestWhatDoesNotAnswerIsTriedAgainAndThenAnError(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	source.AddBucket("bucket", nil)
	source.Write("bucket", "key", "content", s3.Attributes{}, time.Now())
	if _, err := replica.Prepare(t.Context(), source, target); err != nil {
		t.Fatal(err)
	}
	target.LoseAnswer("put bucket/key")
	if result, err := replica.Pass(t.Context(), source, target, replica.Options{}); err != nil || result.Copied != 1 || target.Count("put bucket/key") != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	target.SetDown(true)
	if _, err := replica.Pass(t.Context(), source, target, replica.Options{}); !errors.Is(err, s3sim.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// defective is a store with a defect in the program.
type defective struct {
	*s3sim.Store
	listing bool
}

func (d *defective) Open(ctx context.Context, bucket string, v s3.Version, offset, length int64) (s3.Content, error) {
	if !d.listing {
		panic("a defect")
	}
	return d.Store.Open(ctx, bucket, v, offset, length)
}

func (d *defective) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	if d.listing {
		panic("a defect")
	}
	return d.Store.Versions(ctx, bucket, after)
}

func TestADefectEndsThePassAndReachesTheCaller(t *testing.T) {
	for _, listing := range []bool{false, true} {
		source, target := s3sim.New(), s3sim.New()
		source.AddBucket("bucket", nil)
		for i := range 100 {
			source.Write("bucket", fmt.Sprint("key ", i), "content", s3.Attributes{}, time.Now())
		}
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		caught := parallel.Catch(func() {
			_, err := replica.Pass(t.Context(), &defective{source, listing}, target, replica.Options{Workers: 2})
			t.Errorf("it ended with %v", err)
		})
		if caught == nil || caught.Value != "a defect" {
			t.Errorf("caught %v", caught)
		}
	}
}

// unordered lists its keys in the wrong order.
type unordered struct{ *s3sim.Store }

func (u *unordered) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	versions := slices.Collect(maps.Keys(maps.Collect(u.Store.Versions(ctx, bucket, after))))
	slices.SortFunc(versions, func(a, b s3.Version) int { return strings.Compare(b.Key, a.Key) })
	return func(yield func(s3.Version, error) bool) {
		for _, v := range versions {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func TestAListOutOfOrderIsAnErrorAndRemovesNothing(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	for _, store := range []*s3sim.Store{source, target} {
		store.AddBucket("bucket", nil)
		for i := range 10 {
			store.Write("bucket", fmt.Sprint("key ", i), "content", s3.Attributes{}, time.Unix(1, 0))
		}
	}
	before := target.Dump()
	_, err := replica.Pass(t.Context(), &unordered{source}, target, replica.Options{})
	if err == nil || !strings.Contains(err.Error(), "out of order") || target.Dump() != before {
		t.Errorf("error %v, and the target has\n%s", err, target.Dump())
	}
}
