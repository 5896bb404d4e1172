package miniotest_test

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// encryptedKinds are objects that the server encrypts.
func encryptedKinds(t *testing.T, s side, bucket string) {
	t.Helper()
	own := encrypt.NewSSE()
	s.put(t, bucket, "encrypted", "content", minio.PutObjectOptions{ServerSideEncryption: own, ContentType: "x/y"})
	s.put(t, bucket, "encrypted, empty", "", minio.PutObjectOptions{ServerSideEncryption: own})
	s.put(t, bucket, "encrypted, in parts", strings.Repeat("0123456789abcdef", 41<<16), minio.PutObjectOptions{ServerSideEncryption: own, PartSize: 5 << 20})
	s.put(t, bucket, "encrypted, large", strings.Repeat("0123456789abcdef", 41<<16), minio.PutObjectOptions{ServerSideEncryption: own, DisableMultipart: true})
}

func TestEncryptedObjectsGoAlongWhereTheTargetCanEncrypt(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1, withKeys), newSide(t, 1, strings.Replace(withKeys, "Iyqs", "AAAA", 1))
	source.versioned(t, "bucket")
	encryptedKinds(t, source, "bucket")
	result := copied(t, source, target, replica.Options{PartSize: 5 << 20})
	if result.NotCarried.Count != 0 || result.Copied != 4 {
		t.Errorf("%+v", result)
	}
	same(t, source, target)
	sameHeaders(t, source, target, "bucket")
	if again := copied(t, source, target, replica.Options{}); again.Changes() != 0 {
		t.Errorf("a second pass changed something: %+v", again)
	}
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"source": source.store, "target": target.store})
	sameForMC(t, mc, "bucket")
}

func TestObjectsThatCannotBeCarriedOverAreNamedAndTheOthersAreCopied(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1, withKeys), newSide(t, 1)
	source.bucket(t, "bucket")
	encryptedKinds(t, source, "bucket")
	source.put(t, "bucket", "plain", "content", minio.PutObjectOptions{})
	result := copied(t, source, target, replica.Options{PartSize: 5 << 20})
	if result.Copied != 1 || result.NotCarried.Count != 4 || !strings.Contains(strings.Join(result.NotCarried.First, "\n"), "object bucket/encrypted ("+s3.NullVersion+", ") {
		t.Errorf("%+v", result)
	}
}
