package replica_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

func TestWhatOneStoreHasAlone(t *testing.T) {
	one, other := twin(t, 3, "a", "b")
	names := func(since time.Time) []string {
		t.Helper()
		found, err := replica.OnlyIn(t.Context(), one, other, since)
		if err != nil || found.Count != len(found.First) {
			t.Errorf("%+v, %v", found, err)
		}
		return untimed(found.First)
	}
	if got := names(time.Time{}); len(got) != 0 {
		t.Errorf("of twins one has %q alone", got)
	}
	now := time.Now()
	one.Write("a", "key 00001", "newer", s3.Attributes{}, now.Add(time.Minute))
	other.Write("a", "key 00002", "newer on the other", s3.Attributes{}, now.Add(time.Minute))
	one.AddBucket("c", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	one.Write("c", "x", "text", s3.Attributes{}, now.Add(-time.Hour))
	one.AddBucket("d", nil)
	want := []string{"object a/key 00001 (null)", "bucket c", "object c/x (00000001-0000-4000-8000-000000000000)", "bucket d"}
	if got := names(time.Time{}); !slices.Equal(got, want) {
		t.Errorf("it has %q alone, want %q", got, want)
	}
	if got := names(now); !slices.Equal(got, want[:1]) {
		t.Errorf("it has %q alone since then, want %q", got, want[:1])
	}
}

// TestACopyThatIsNewerIsNotForeign: as an older EKCO made it, without versions and times.
func TestACopyThatIsNewerIsNotForeign(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	was, now := time.Now().Add(-time.Hour), time.Now()
	source.AddBucket("plain", nil)
	source.AddBucket("versioned", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	target.AddBucket("plain", nil)
	target.AddBucket("versioned", nil)
	source.Write("plain", "copied", "text", s3.Attributes{}, was)
	target.Write("plain", "copied", "text", s3.Attributes{}, now)
	source.Write("plain", "empty", "", s3.Attributes{Tags: map[string]string{"a": "b"}}, was)
	target.Write("plain", "empty", "", s3.Attributes{}, now)
	source.Write("plain", "rewritten", "old!", s3.Attributes{}, was)
	target.Write("plain", "rewritten", "new!", s3.Attributes{}, now)
	target.Write("plain", "theirs", "text", s3.Attributes{}, now)
	short := source.Write("plain", "same etag", "text", s3.Attributes{}, was)
	short.Size, short.Modified = 6, now
	if err := target.Put(t.Context(), "plain", short, nil, strings.NewReader("longer"), true); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "newest"} {
		source.Write("versioned", "copied", text, s3.Attributes{}, was)
	}
	target.Write("versioned", "copied", "newest", s3.Attributes{}, now)
	source.Write("versioned", "rewritten", "old!", s3.Attributes{}, was)
	target.Write("versioned", "rewritten", "new!", s3.Attributes{}, now)
	want := []string{"object plain/rewritten (null)", "object plain/same etag (null)", "object plain/theirs (null)", "object versioned/rewritten (null)"}
	if found, err := replica.Foreign(t.Context(), target, source, time.Time{}); err != nil || !slices.Equal(untimed(found.First), want) {
		t.Errorf("foreign are %q, %v, want %q", found.First, err, want)
	}
	want = []string{"object plain/copied (null)", "object plain/empty (null)", "object plain/rewritten (null)", "object plain/same etag (null)", "object plain/theirs (null)", "object versioned/copied (null)", "object versioned/rewritten (null)"}
	if found, err := replica.OnlyIn(t.Context(), target, source, time.Time{}); err != nil || !slices.Equal(untimed(found.First), want) {
		t.Errorf("alone are %q, %v, want %q", found.First, err, want)
	}
}

// TestACopyThatHasMoreIsForeign: a client of the target wrote it again with that. What an older EKCO copied has less.
func TestACopyThatHasMoreIsForeign(t *testing.T) {
	until := time.Now().Add(time.Hour)
	full := s3.Attributes{
		Headers: map[string]string{"Content-Type": "a/a", "X-Amz-Meta-A": "1"}, Tags: map[string]string{"team": "a"}, Retention: &s3.Retention{Mode: "GOVERNANCE", Until: until}, LegalHold: true,
	}
	for name, test := range map[string]struct {
		has, there s3.Attributes
		foreign    bool
	}{
		"the same": {full, full, false}, "less": {full, s3.Attributes{Headers: map[string]string{"Content-Type": "a/a"}}, false}, "nothing": {full, s3.Attributes{}, false},
		"another header": {full, s3.Attributes{Headers: map[string]string{"Content-Type": "b/b"}}, true},
		"metadata":       {s3.Attributes{}, s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": ""}}, true},
		"a tag":          {full, s3.Attributes{Tags: map[string]string{"team": "b"}}, true},
		"a retention":    {s3.Attributes{}, s3.Attributes{Retention: full.Retention}, true},
		"a legal hold":   {s3.Attributes{}, s3.Attributes{LegalHold: true}, true},
	} {
		for _, silent := range []string{"", "plain"} {
			from, to := s3sim.New(), s3sim.New()
			source, target := &reticent{Store: from, silent: silent}, &reticent{Store: to, silent: silent}
			from.AddBucket("plain", nil)
			to.AddBucket("plain", nil)
			from.Write("plain", "copied", "text", test.has, time.Now().Add(-time.Hour))
			to.Write("plain", "copied", "text", test.there, time.Now())
			found, err := replica.Foreign(t.Context(), target, source, time.Time{})
			if err != nil || (found.Count == 1) != test.foreign || silent == "" && target.asked.Load()+source.asked.Load() > 0 {
				t.Errorf("%s: foreign are %q, %v", name, found.First, err)
			}
		}
	}
}

// TestAVersionOrAMarkerOfItsOwnIsForeign: who copied without versions made none.
func TestAVersionOrAMarkerOfItsOwnIsForeign(t *testing.T) {
	source, target := s3sim.New(), s3sim.New()
	keeps := s3.Settings{s3.Versioning: s3.VersioningEnabled}
	was, now := time.Now().Add(-time.Hour), time.Now()
	source.AddBucket("bucket", keeps)
	source.Write("bucket", "deleted", "", s3.Attributes{}, was)
	source.Delete("bucket", "deleted", was)
	source.Write("bucket", "versioned", "text", s3.Attributes{}, was)
	target.AddBucket("bucket", s3.Settings{s3.Versioning: "<Status>Suspended</Status>"})
	target.Delete("bucket", "deleted", now)
	target.AddBucket("other", keeps)
	source.AddBucket("other", nil)
	source.Write("other", "versioned", "text", s3.Attributes{}, was)
	own := target.Write("other", "versioned", "text", s3.Attributes{}, now)
	want := []string{"object bucket/deleted (null)", "object other/versioned (" + own.ID + ")"}
	if found, err := replica.Foreign(t.Context(), target, source, time.Time{}); err != nil || !slices.Equal(untimed(found.First), want) {
		t.Errorf("foreign are %q, %v, want %q", found.First, err, want)
	}
}

// untimed are names without the times of versions that have no id of their own.
func untimed(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = times.ReplaceAllString(name, "")
	}
	return all
}

var times = regexp.MustCompile(`, [-0-9]+T[.:0-9]+Z`)

// TestAVersionWithoutAnIDIsNamedByItsTime: who releases it does not release what was written since.
func TestAVersionWithoutAnIDIsNamedByItsTime(t *testing.T) {
	one, other := s3sim.New(), s3sim.New()
	names := func() string {
		found, err := replica.OnlyIn(t.Context(), one, other, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return found.First[len(found.First)-1]
	}
	one.AddBucket("plain", nil)
	at := time.Now()
	one.Write("plain", "key", "text", s3.Attributes{}, at)
	before := names()
	if again := names(); again != before {
		t.Errorf("it is %s, and then %s", before, again)
	}
	one.Write("plain", "key", "text", s3.Attributes{}, at.Add(time.Millisecond))
	if got := names(); got == before {
		t.Errorf("what was written since is %s, too", got)
	}
}
