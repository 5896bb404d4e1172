package minio

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
)

// told is a server that answers as the test says.
type told struct {
	drives  []s3.Drive
	buckets [][]string // the last one from then on
	listed  []s3.Version
	// news is what is answered one after the other, the last one from then on.
	news []func() (s3.HealNews, error)
	at   time.Time
}

func (s *told) Server(context.Context) (s3.Server, error) { return s3.Server{Drives: s.drives}, nil }

func (s *told) Buckets(context.Context) ([]string, error) {
	now := s.buckets[0]
	s.buckets = s.buckets[min(1, len(s.buckets)-1):]
	return now, nil
}

func (s *told) Versions(_ context.Context, bucket, _ string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		if bucket != "data" {
			yield(s3.Version{}, fmt.Errorf("list %s: %w", bucket, s3.ErrGone))
			return
		}
		for _, v := range s.listed {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (s *told) BeginHeal(context.Context) (s3.HealBegun, error) {
	return s3.HealBegun{Token: "pass", At: s.at}, nil
}

func (s *told) HealNews(context.Context, string) (s3.HealNews, error) {
	now := s.news[0]
	s.news = s.news[min(1, len(s.news)-1):]
	return now()
}

func (*told) Close() {}

// says is an answer.
func says(ended bool, items ...s3.HealItem) func() (s3.HealNews, error) {
	return func() (s3.HealNews, error) { return s3.HealNews{Ended: ended, Items: items}, nil }
}

// states are those of three drives.
func states(all ...string) (of []s3.DriveState) {
	for i, state := range all {
		of = append(of, s3.DriveState{Drive: fmt.Sprint("http://ha-minio-", i), State: state})
	}
	return of
}

// item is one of which all drives have their part.
func item(index int64, kind s3.HealKind, key string) s3.HealItem {
	one := s3.HealItem{Index: index, Kind: kind, Bucket: "data", Key: key, Before: states("ok", "ok", "ok"), After: states("ok", "ok", "ok")}
	if kind == s3.HealedObject {
		one.Of, one.Version = 3, s3.NullVersion
	}
	return one
}

var errSilent = errors.New("connection refused")

// complete is a server whose pass finds nothing.
func complete(at time.Time) *told {
	works := s3.Drive{Works: true}
	return &told{
		drives: []s3.Drive{works, works, works}, at: at, buckets: [][]string{{"data"}},
		listed: []s3.Version{{Key: "a", ID: s3.NullVersion}, {Key: "new", ID: s3.NullVersion, Modified: at}},
		news:   []func() (s3.HealNews, error){says(false), says(true, item(1, s3.HealedBucket, ""), item(2, s3.HealedObject, "a")), says(true)},
	}
}

func (s *told) run(ctx context.Context) (Passed, error) {
	return Pass{Scanner: s, Lister: s, Drives: 3, Began: func(string) error { return nil }, Progress: func(Passed) error { return nil }}.Run(ctx)
}

func TestAPassProvesThatNothingIsLackingOnlyIfAllSaySo(t *testing.T) {
	// answers has the pass answer so, and then that it has ended.
	answers := func(s *told, items ...s3.HealItem) {
		s.news = []func() (s3.HealNews, error){says(true, items...), says(true)}
	}
	bucket := item(1, s3.HealedBucket, "")
	changed := func(change func(one *s3.HealItem)) func(s *told) {
		return func(s *told) {
			one := item(2, s3.HealedObject, "a")
			change(&one)
			answers(s, bucket, one)
		}
	}
	for name, test := range map[string]struct {
		change func(s *told)
		wrong  string
	}{
		"all have all":           {func(*told) {}, ""},
		"it was repaired":        {changed(func(one *s3.HealItem) { one.Before[1].State = "missing" }), ""},
		"a drive lacks it":       {changed(func(one *s3.HealItem) { one.After[1].State = "missing" }), `MinIO could not restore a part of 1 object: 1 on http://ha-minio-1 (missing); one is "data/a"`},
		"a drive is away":        {changed(func(one *s3.HealItem) { one.After[2].State = "offline" }), "1 on http://ha-minio-2 (offline)"},
		"a drive is not told of": {changed(func(one *s3.HealItem) { one.After = one.After[:2] }), "1 on a drive that MinIO does not name"},
		"it went wrong":          {changed(func(one *s3.HealItem) { one.Detail = "quorum loss" }), `one is "data/a" (quorum loss)`},
		"it went wrong at once":  {changed(func(one *s3.HealItem) { one.Detail, one.After = "read failed", nil }), `one is "data/a" (read failed)`},
		"it was deleted under way": {func(s *told) {
			answers(s, bucket, s3.HealItem{Index: 2, Kind: s3.HealedObject, Bucket: "data", Key: "a", Version: s3.NullVersion, Detail: "Object not found"})
			s.listed = nil
		}, ""},
		"it was deleted under way, and that is told of drives": {func(s *told) {
			one := item(2, s3.HealedObject, "a")
			one.Detail, one.After = "Object not found", states("missing", "missing", "missing")
			answers(s, bucket, one)
			s.listed = nil
		}, ""},
		"no drive has it, and it is no error": {changed(func(one *s3.HealItem) { one.After = states("missing", "missing", "missing") }), `1 on http://ha-minio-0 (missing), 1 on http://ha-minio-1`},
		"it is said to be gone, and is listed": {changed(func(one *s3.HealItem) {
			*one = s3.HealItem{Index: 2, Kind: one.Kind, Bucket: "data", Key: "a", Version: s3.NullVersion, Detail: "Object not found"}
		}), `MinIO did not check 1 object, such as "data/a"; it checked 2 others`},
		"another version is listed": {func(s *told) { s.listed = append(s.listed, s3.Version{Key: "a", ID: "v1"}) }, `such as "data/a" in version v1`},
		"a bucket on too few drives": {func(s *told) {
			bucket := bucket
			bucket.After = bucket.After[:2]
			answers(s, bucket, item(2, s3.HealedObject, "a"))
		}, `one is "data"`},
		"a bucket was left out":           {func(s *told) { s.buckets = [][]string{{"data", "more"}} }, "MinIO did not check 1 object, such as bucket more"},
		"a bucket was deleted under way":  {func(s *told) { s.buckets = [][]string{{"data", "more"}, {"data"}} }, ""},
		"a bucket is not listed any more": {func(s *told) { s.buckets = [][]string{{"data"}, {}}; s.listed = append(s.listed, s3.Version{Key: "b"}) }, `such as "data/b"`},
		"a drive does not work":           {func(s *told) { s.drives[1] = s3.Drive{Host: "ha-minio-1"} }, "MinIO reports that the drive of ha-minio-1 does not work"},
		"a drive is not known":            {func(s *told) { s.drives = s.drives[:2] }, "MinIO reports 2 drives, want 3"},
		"the server gave up": {func(s *told) {
			s.news = []func() (s3.HealNews, error){func() (s3.HealNews, error) { return s3.HealNews{Ended: true, Failed: "it gave up"}, nil }}
		}, "MinIO did not check all objects: it gave up"},
		"the first item is lacking":           {func(s *told) { answers(s, item(2, s3.HealedBucket, ""), item(3, s3.HealedObject, "a")) }, "an answer was lost"},
		"an item is lacking":                  {func(s *told) { answers(s, bucket, item(3, s3.HealedObject, "a")) }, "an answer was lost"},
		"it ended and goes on":                {func(s *told) { s.news[2] = says(false) }, "but continued it"},
		"it ended and has more":               {func(s *told) { s.news[2] = says(true, item(3, s3.HealedObject, "b")) }, "but continued it"},
		"it is forgotten right after its end": {func(s *told) { s.news[2] = func() (s3.HealNews, error) { return s3.HealNews{}, s3.ErrForgotten } }, "MinIO no longer knows"},
		"an answer is lost at the end": {func(s *told) {
			end := says(true)
			s.news = []func() (s3.HealNews, error){s.news[1], func() (s3.HealNews, error) { return s3.HealNews{}, errSilent }, end, end}
			s.news[0] = says(false, bucket, item(2, s3.HealedObject, "a"))
		}, "an answer was lost"},
		"a question is not answered for a while": {func(s *told) {
			all, end := says(true, bucket, item(2, s3.HealedObject, "a")), says(true)
			silent := func() (s3.HealNews, error) { return s3.HealNews{}, errSilent }
			s.news = []func() (s3.HealNews, error){silent, silent, silent, all, end}
		}, ""},
		"no question is answered any more": {func(s *told) {
			s.news = []func() (s3.HealNews, error){func() (s3.HealNews, error) { return s3.HealNews{}, errSilent }}
		}, "cannot check that all drives have all objects: connection refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := complete(time.Now())
			test.change(s)
			passed, err := s.run(t.Context())
			if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("%s: %+v, %v; want %q", name, passed, err, test.wrong)
			}
		})
	}
}

func TestAPassThatIsForgottenOrDeniedIsNotAskedForAgain(t *testing.T) {
	for _, final := range []error{s3.ErrForgotten, s3.ErrDenied, s3.ErrNotOffered} {
		synctest.Test(t, func(t *testing.T) {
			s, began := complete(time.Now()), time.Now()
			s.news = []func() (s3.HealNews, error){says(false), func() (s3.HealNews, error) { return s3.HealNews{}, final }}
			if _, err := s.run(t.Context()); !errors.Is(err, final) || time.Since(began) > 5*time.Second {
				t.Errorf("%v: it ends after %s with %v", final, time.Since(began), err)
			}
		})
	}
}

func TestDrivesThatLackSomethingAreNamedUpToSome(t *testing.T) {
	l := missingParts{countByDrive: map[string]int{}}
	for i := range 100 {
		l.addIfMissing(s3.HealItem{Bucket: "data", Key: fmt.Sprint(i), After: []s3.DriveState{{Drive: fmt.Sprint("d", i), State: "missing"}}}, 1)
	}
	err := l.toError(Passed{Lacking: 100})
	if want := `MinIO could not restore a part of 100 objects: 1 on d0 (missing), 1 on d1 (missing), 1 on d10 (missing), 61 more drives; one is "data/0"`; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestWhatWasLookedAtIsKnownAndNothingElse(t *testing.T) {
	s := newSeen()
	const n = 20_000
	for i := range n {
		s.add(s3.HealedObject, "data", fmt.Sprint("object ", i), s3.NullVersion)
	}
	for i := range n {
		if !s.has(s3.HealedObject, "data", fmt.Sprint("object ", i), s3.NullVersion) {
			t.Fatalf("object %d was added", i)
		}
		if s.has(s3.HealedObject, "data", fmt.Sprint("other ", i), s3.NullVersion) || s.has(s3.HealedObject, "other", fmt.Sprint("object ", i), s3.NullVersion) ||
			s.has(s3.HealedObject, "data", fmt.Sprint("object ", i), "v") || s.has(s3.HealedBucket, "data", fmt.Sprint("object ", i), s3.NullVersion) {
			t.Fatalf("what is like object %d was not added", i)
		}
	}
}
