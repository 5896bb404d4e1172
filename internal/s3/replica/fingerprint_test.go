package replica_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

// TestStoresThatListSomethingElseHaveAnotherFingerprint: a deletion trusts it.
func TestStoresThatListSomethingElseHaveAnotherFingerprint(t *testing.T) {
	at := time.Now().Truncate(time.Millisecond)
	until := at.Add(time.Hour)
	writes := func(bucket, key, content string, attributes s3.Attributes, at time.Time) func(*s3sim.Store) {
		return func(s *s3sim.Store) { s.Write(bucket, key, content, attributes, at) }
	}
	seen := map[replica.Fingerprint]string{}
	for name, write := range map[string]func(*s3sim.Store){
		"an object":      writes("a", "key", "text", s3.Attributes{}, at),
		"another bucket": writes("b", "key", "text", s3.Attributes{}, at),
		"another time":   writes("a", "key", "text", s3.Attributes{}, at.Add(time.Millisecond)),
		"both buckets": func(s *s3sim.Store) {
			s.Write("a", "key", "text", s3.Attributes{}, at)
			s.Write("b", "key", "text", s3.Attributes{}, at)
		},
		"more attributes than are remembered": func(s *s3sim.Store) {
			for i := range 5 {
				attributes := s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": strings.Repeat(fmt.Sprint(i), 1<<20)}}
				s.Write("versioned", "key", "text", attributes, at.Add(time.Duration(i)*time.Second))
			}
		},
		"a header":       writes("a", "key", "text", s3.Attributes{Headers: map[string]string{"X-Amz-Meta-A": "1"}}, at),
		"an encryption":  writes("a", "key", "text", s3.Attributes{Encryption: s3.SSEC}, at),
		"a retention":    writes("a", "key", "text", s3.Attributes{Retention: &s3.Retention{Mode: "GOVERNANCE", Until: until}}, at),
		"a stricter one": writes("a", "key", "text", s3.Attributes{Retention: &s3.Retention{Mode: "COMPLIANCE", Until: until}}, at),
		"a longer one":   writes("a", "key", "text", s3.Attributes{Retention: &s3.Retention{Mode: "GOVERNANCE", Until: until.Add(time.Hour)}}, at),
	} {
		source, target := s3sim.New(), s3sim.New()
		source.AddBucket("a", nil)
		source.AddBucket("b", nil)
		source.AddBucket("versioned", s3.Settings{s3.Versioning: s3.VersioningEnabled})
		target.AddBucket("gone", nil)
		write(source)
		all, err := replica.Survey(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		if other, is := seen[all.Fingerprint]; is {
			t.Errorf("%s: it is that of %s", name, other)
		}
		seen[all.Fingerprint] = name
		if _, err := replica.Prepare(t.Context(), source, target); err != nil {
			t.Fatal(err)
		}
		result, err := replica.Pass(t.Context(), source, target, replica.Options{})
		if err != nil || result.Fingerprint != all.Fingerprint {
			t.Errorf("%s: a pass says %s instead of %s, %v", name, result.Fingerprint, all.Fingerprint, err)
		}
	}
}
