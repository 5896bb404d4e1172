package miniotest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
)

// TestMetadataThatIsRewrittenInPlaceIsCopied: the server keeps content and ETag.
func TestMetadataThatIsRewrittenInPlaceIsCopied(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1, withKeys), newSide(t, 1, withKeys)
	source.bucket(t, "bucket")
	encryptedKinds(t, source, "bucket")
	source.put(t, "bucket", "plain", "content", minio.PutObjectOptions{})
	options := replica.Options{PartSize: 5 << 20}
	copied(t, source, target, options)
	for _, key := range []string{"plain", "encrypted", "encrypted, in parts", "encrypted, large"} {
		to := minio.CopyDestOptions{Bucket: "bucket", Object: key, ReplaceMetadata: true, UserMetadata: map[string]string{"New": "1"}}
		if key != "plain" {
			to.Encryption = encrypt.NewSSE()
		}
		if _, err := source.app.Client.CopyObject(t.Context(), to, minio.CopySrcOptions{Bucket: "bucket", Object: key}); err != nil {
			t.Fatal(err)
		}
	}
	if result := copied(t, source, target, options); result.Copied != 4 || result.Changes() != 4 {
		t.Errorf("%+v", result)
	}
	same(t, source, target)
	sameHeaders(t, source, target, "bucket")
	if again := copied(t, source, target, options); again.Changes() != 0 {
		t.Errorf("a second pass changed something: %+v", again)
	}
}

// TestAClientsVersionIsNotReplaced that has no id of its own: EKCO saw another one, or none. What EKCO saw is replaced,
// also where the server encrypts it, and versions with ids stay side by side.
func TestAClientsVersionIsNotReplaced(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1, withKeys), newSide(t, 1, withKeys)
	source.bucket(t, "bucket")
	target.bucket(t, "bucket")
	options := replica.Options{PartSize: 5 << 20}
	for key, sse := range map[string]encrypt.ServerSide{"plain": nil, "encrypted": encrypt.NewSSE()} {
		t.Run(key, func(t *testing.T) {
			write := func(s side, content string) s3.Version {
				t.Helper()
				s.put(t, "bucket", key, content, minio.PutObjectOptions{ServerSideEncryption: sse})
				versions, err := s.VersionsOf(t.Context(), "bucket", key)
				if err != nil || len(versions) != 1 {
					t.Fatal(versions, err)
				}
				return versions[0]
			}
			v := write(source, "of the source...")
			// A pass lists both sides before it stores anything.
			meanwhile := &opening{side: source, at: 1, do: func() { write(target, "of a client.....") }}
			for range 2 { // without one on the target, and with one
				meanwhile.n.Store(0)
				if _, err := replica.Pass(t.Context(), meanwhile, target, options); err != nil {
					t.Fatal(err)
				}
				if got := target.content(t, "bucket", key, ""); !strings.HasPrefix(got, "of a client") {
					t.Errorf("%s is replaced by %.16q", key, got)
				}
				write(target, "as it was before")
			}
			if result := copied(t, source, target, options); result.Copied != 1 {
				t.Errorf("%+v", result)
			}
			if got := target.content(t, "bucket", key, ""); !strings.HasPrefix(got, "of the source") {
				t.Errorf("%s %s stays %.16q", key, v.ID, got)
			}
		})
	}
	same(t, source, target)
}

// TestAShortenedRetentionIsCopied, also where it is over by then.
func TestAShortenedRetentionIsCopied(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 1)
	if err := source.app.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{"small": 1, "large": 11 << 16}
	for key, size := range keys {
		source.put(t, "locked", key, strings.Repeat("of the source...", size), minio.PutObjectOptions{Mode: minio.Governance, RetainUntilDate: time.Now().Add(time.Hour), SendContentMd5: true, PartSize: 5 << 20})
	}
	options := replica.Options{PartSize: 5 << 20}
	copied(t, source, target, options)
	mode, until := minio.Governance, time.Now().Add(2*time.Second)
	for key := range keys {
		if err := source.app.PutObjectRetention(t.Context(), "locked", key, minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &until, GovernanceBypass: true}); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, await.HangTimeout, "the retention is over", func() (bool, string) { return time.Now().After(until.Add(time.Second)), "" })
	if result := copied(t, source, target, options); result.NotCarried.Count != 0 || result.Copied != 2 {
		t.Errorf("%+v", result)
	}
	same(t, source, target)
	if again := copied(t, source, target, options); again.Changes() != 0 {
		t.Errorf("a second pass changed something: %+v", again)
	}
}

// TestALargeObjectIsStoredBelowNewerVersions: the server has no condition on an older version for what is stored in
// parts. No upload stays on its disk.
func TestALargeObjectIsStoredBelowNewerVersions(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 1)
	source.bucket(t, "bucket")
	large, parts := strings.Repeat("0123456789abcdef", 11<<16), minio.PutObjectOptions{PartSize: 5 << 20}
	options := replica.Options{PartSize: 5 << 20}
	source.put(t, "bucket", "again", large, parts)
	if err := source.app.EnableVersioning(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	source.put(t, "bucket", "again", "newer", minio.PutObjectOptions{})
	source.put(t, "bucket", "later", "older", minio.PutObjectOptions{})
	copied(t, source, target, options)
	if err := source.app.SuspendVersioning(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	source.put(t, "bucket", "later", large, parts)
	source.put(t, "bucket", "again", large, parts)
	copied(t, source, target, options)
	same(t, source, target)
	left, err := target.app.ListMultipartUploads(t.Context(), "bucket", "", "", "", "", 1000)
	if err != nil || len(left.Uploads) > 0 {
		t.Errorf("%v: uploads are left: %+v", err, left.Uploads)
	}
}
