package e2e

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// nestedObject is an object below another one in bucket reports.
type nestedObject struct{ client *minio.Client }

// nest writes it as a client of Service minio.
func (m *minioCluster) nest() nestedObject {
	m.t.Helper()
	client, err := minio.New(m.k.proxy.Address(), &minio.Options{Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, "")})
	if err != nil {
		m.t.Fatal(err)
	}
	if err := client.MakeBucket(m.t.Context(), "reports", minio.MakeBucketOptions{}); err != nil {
		m.t.Fatal(err)
	}
	for _, key := range []string{"report", "report/2026.csv"} {
		if _, err := client.PutObject(m.t.Context(), "reports", key, strings.NewReader(key), int64(len(key)), minio.PutObjectOptions{}); err != nil {
			m.t.Fatal(err)
		}
	}
	return nestedObject{client}
}

// rename is what an administrator is told to do.
func (o nestedObject) rename(t *testing.T) {
	t.Helper()
	from := minio.CopySrcOptions{Bucket: "reports", Object: "report/2026.csv"}
	if _, err := o.client.CopyObject(t.Context(), minio.CopyDestOptions{Bucket: "reports", Object: "report-2026.csv"}, from); err != nil {
		t.Fatal(err)
	}
	if err := o.client.RemoveObject(t.Context(), "reports", "report/2026.csv", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
}
