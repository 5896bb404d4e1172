package miniotest_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// rich are options with everything that can be stored with an object.
func rich() minio.PutObjectOptions {
	return minio.PutObjectOptions{
		ContentType: "text/html; charset=utf-8", ContentEncoding: "gzip", ContentDisposition: `attachment; filename="a b.html"`,
		ContentLanguage: "de", CacheControl: "max-age=60", Expires: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC),
		UserMetadata: map[string]string{"Colour": "blue, green", "Note": "Grüße", "Empty": ""},
		UserTags:     map[string]string{"team": "a b", "x": "y=z"},
	}
}

// keys are unusual and legal.
func keys() []string {
	return []string{
		"plain", "a b+c%20d&e=f?g#h", "äöü/日本語/🙂", "dir/", "dir/file", "dir//double"[:4] + "x", "a.b", "a/b", "a-b", "a", "a/b/c",
		"..hidden", "quote'\"<>&", "tab\there", "\x01control", "new\nline", "back`tick{}|^~[]", strings.Repeat("long/", 150) + strings.Repeat("x", 200),
		"é decomposed e\u0301", "\u00e9", "trailing ", "__XLDIR__x", "z\u007f", "~", "\U0010ffff",
	}
}

// versionedKinds are what a bucket with versions can hold.
func versionedKinds(t *testing.T, s side, bucket string) {
	t.Helper()
	for i := range 3 {
		s.put(t, bucket, "overwritten", fmt.Sprint("content ", i), minio.PutObjectOptions{})
	}
	s.put(t, bucket, "deleted", "content", rich())
	s.remove(t, bucket, "deleted", "")
	s.put(t, bucket, "deleted and back", "content", minio.PutObjectOptions{})
	s.remove(t, bucket, "deleted and back", "")
	s.remove(t, bucket, "deleted and back", "")
	s.put(t, bucket, "deleted and back", "more content", minio.PutObjectOptions{})
	s.remove(t, bucket, "never there", "")
	gone := s.put(t, bucket, "one version removed", "x", minio.PutObjectOptions{})
	s.put(t, bucket, "one version removed", "y", minio.PutObjectOptions{})
	s.remove(t, bucket, "one version removed", gone)
}

func plainKinds(t *testing.T, s side, bucket string) {
	t.Helper()
	s.put(t, bucket, "empty", "", minio.PutObjectOptions{})
	s.put(t, bucket, "rich", "content", rich())
	s.put(t, bucket, "rich and empty", "", rich())
	s.put(t, bucket, "no xml name", "content", minio.PutObjectOptions{UserMetadata: map[string]string{"a+b": "c", "1": "d"}, UserTags: map[string]string{"k": "v"}})
	s.put(t, bucket, "parts", strings.Repeat("0123456789abcdef", 12<<16), minio.PutObjectOptions{PartSize: 5 << 20, UserMetadata: map[string]string{"Parts": "3"}})
	s.put(t, bucket, "many small parts", strings.Repeat("0123456789abcdef", 45<<16), minio.PutObjectOptions{PartSize: 5 << 20, ContentType: "x/y", UserTags: map[string]string{"k": "v"}})
	s.put(t, bucket, "one large part", strings.Repeat("fedcba9876543210", 40<<16), minio.PutObjectOptions{DisableMultipart: true})
	for _, key := range keys() {
		if strings.HasSuffix(key, "/") {
			s.put(t, bucket, key, "", minio.PutObjectOptions{})
			continue
		}
		s.put(t, bucket, key, "content of "+key, minio.PutObjectOptions{})
	}
	if _, err := s.app.NewMultipartUpload(t.Context(), bucket, "unfinished", minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}

// lockedKinds are what a bucket with object lock can hold.
func lockedKinds(t *testing.T, s side, bucket string) {
	t.Helper()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	s.put(t, bucket, "governance", "x", minio.PutObjectOptions{Mode: minio.Governance, RetainUntilDate: until})
	s.put(t, bucket, "compliance", "x", minio.PutObjectOptions{Mode: minio.Compliance, RetainUntilDate: until})
	s.put(t, bucket, "on hold", "x", minio.PutObjectOptions{LegalHold: minio.LegalHoldEnabled})
	s.put(t, bucket, "both, in parts", strings.Repeat("0123456789abcdef", 41<<16), minio.PutObjectOptions{
		LegalHold: minio.LegalHoldEnabled, Mode: minio.Governance, RetainUntilDate: until.Add(time.Hour),
	})
	s.put(t, bucket, "free", "x", minio.PutObjectOptions{})
	await.Until(t, await.HangTimeout, "a retention is taken that is soon over", func() (bool, string) { // it may be over too soon
		_, err := s.app.Client.PutObject(t.Context(), bucket, "short", strings.NewReader("x"), 1, minio.PutObjectOptions{
			Mode: minio.Governance, RetainUntilDate: time.Now().Add(2 * time.Second),
		})
		return err == nil, fmt.Sprint(err)
	})
}

// sameHeaders compares what a reader of an object is told on both sides.
func sameHeaders(t *testing.T, source, target side, bucket string) {
	t.Helper()
	for v, err := range source.Versions(t.Context(), bucket, "") {
		if err != nil {
			t.Fatal(err)
		}
		if v.DeleteMarker {
			continue
		}
		options := minio.StatObjectOptions{VersionID: v.ID}
		want, err := source.app.StatObject(t.Context(), bucket, v.Key, options)
		if err != nil {
			t.Fatal(err)
		}
		have, err := target.app.StatObject(t.Context(), bucket, v.Key, options)
		if err != nil {
			t.Fatal(err)
		}
		for _, headers := range []map[string][]string{want.Headers, have.Headers} {
			for _, other := range []string{"Date", "X-Amz-Request-Id", "X-Amz-Id-2", "X-Ratelimit-Limit", "X-Ratelimit-Remaining"} {
				delete(headers, other)
			}
		}
		if !maps.EqualFunc(want.Headers, have.Headers, func(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }) {
			t.Errorf("%s/%q is answered with\n%v\ninstead of\n%v", bucket, v.Key, have.Headers, want.Headers)
		}
		if source.content(t, bucket, v.Key, v.ID) != target.content(t, bucket, v.Key, v.ID) {
			t.Errorf("%s/%q has other content", bucket, v.Key)
		}
	}
}

func TestAllKindsOfObjectsAreTheSameOnSixServersAfterTheCopy(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 6)
	source.bucket(t, "plain")
	plainKinds(t, source, "plain")
	source.versioned(t, "versioned")
	plainKinds(t, source, "versioned")
	versionedKinds(t, source, "versioned")
	source.bucket(t, "suspended")
	source.put(t, "suspended", "older than versions", "x", rich())
	source.put(t, "suspended", "older, then deleted", "x", rich())
	if err := source.app.EnableVersioning(t.Context(), "suspended"); err != nil {
		t.Fatal(err)
	}
	versionedKinds(t, source, "suspended")
	source.put(t, "suspended", "older than versions", "y", rich())
	if err := source.app.SuspendVersioning(t.Context(), "suspended"); err != nil {
		t.Fatal(err)
	}
	source.put(t, "suspended", "overwritten", "the null version", rich())
	source.remove(t, "suspended", "deleted and back", "")
	source.remove(t, "suspended", "older, then deleted", "")
	if err := source.app.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	lockedKinds(t, source, "locked")

	result := copied(t, source, target, replica.Options{PartSize: 5 << 20})
	t.Logf("%+v", result)
	same(t, source, target)
	if again := copied(t, source, target, replica.Options{}); again.Changes() != 0 || again.Seen != result.Seen {
		t.Errorf("a second pass changed something: %+v", again)
	}
	if warnings, err := replica.Settle(t.Context(), source, target); err != nil || len(warnings) > 0 {
		t.Errorf("settle: %v, %v", warnings, err)
	}
	if report := same(t, source, target); len(report.Settings) > 0 || report.Versions != result.Seen || report.SampledBytes < 48<<20 {
		t.Errorf("%+v", report)
	}
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"source": source.store, "target": target.store})
	for _, bucket := range []string{"plain", "versioned", "suspended", "locked"} {
		sameForMC(t, mc, bucket)
		sameHeaders(t, source, target, bucket)
	}
}
