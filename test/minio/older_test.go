package miniotest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
)

func TestWhatAnOlderEKCOCopiedIsNotForeignAndMadeEqual(t *testing.T) {
	t.Parallel()
	source, target := newSide(t, 1), newSide(t, 6)
	source.bucket(t, "plain")
	source.put(t, "plain", "rich", "content", rich())
	source.put(t, "plain", "empty", "", minio.PutObjectOptions{})
	source.put(t, "plain", "parts", strings.Repeat("0123456789abcdef", 17<<16), minio.PutObjectOptions{}) // more than one
	source.put(t, "plain", "rewritten", "content", minio.PutObjectOptions{})
	source.versioned(t, "versioned")
	source.put(t, "versioned", "key", "first", rich())
	source.put(t, "versioned", "key", "second", rich())
	source.put(t, "versioned", "deleted", "content", rich())
	source.remove(t, "versioned", "deleted", "")
	command(t, await.HangTimeout, order{Do: "serial", From: source.store.Address(0), To: target.store.Address(0)})

	foreign := func(want ...string) {
		t.Helper()
		if found, err := replica.Foreign(t.Context(), target, source, time.Time{}); err != nil || !slices.EqualFunc(found.First, want, strings.HasPrefix) {
			t.Errorf("foreign are %q, %v, want %q", found.First, err, want)
		}
	}
	foreign()
	if found, err := replica.OnlyIn(t.Context(), target, source, time.Time{}); err != nil || found.Count != 5 {
		t.Errorf("newer are %+v, %v, want all 5 copies", found, err)
	}
	report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{OnlyAttributes: true})
	if err != nil || report.Count != 1 || report.Differences[0].Key != "rich" || !slices.Contains(report.Differences[0].Aspects, replica.Tags) {
		t.Errorf("it lacks %+v, %v, want what the rich one has", report.Differences, err)
	}
	target.put(t, "plain", "rewritten", "CONTENT", minio.PutObjectOptions{})
	foreign("object plain/rewritten (null, ")
	to := minio.CopyDestOptions{Bucket: "plain", Object: "rich", ReplaceMetadata: true, UserMetadata: map[string]string{"Owner": "me"}}
	if _, err := target.app.Client.CopyObject(t.Context(), to, minio.CopySrcOptions{Bucket: "plain", Object: "rich"}); err != nil {
		t.Fatal(err)
	}
	foreign("object plain/rewritten (null, ", "object plain/rich (null, ")
	copied(t, source, target, replica.Options{})
	same(t, source, target)
	foreign()
}
