package miniotest_test

import (
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/replicatedhq/ekco/internal/s3/replica"
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
