package miniotest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

func TestAFullDiskEndsTheCopyAndAPassGoesOnOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	source := newSide(t, 1)
	source.bucket(t, "bucket")
	for i := range 20 {
		source.put(t, "bucket", fmt.Sprintf("a %02d", i), strings.Repeat("0123456789abcdef", 4<<16), minio.PutObjectOptions{})
	}
	source.put(t, "bucket", "b, in parts", strings.Repeat("0123456789abcdef", 48<<16), minio.PutObjectOptions{PartSize: 5 << 20})
	for name, first := range map[string]int{"while small objects are stored": 64, "while parts are": 112} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := miniotest.Dir(t)
			disk := miniotest.MountDisk(t, dir, first)
			target := sideOf(t, miniotest.StartIn(t, programs, dir, miniotest.Addresses(1)))
			if _, err := replica.Prepare(t.Context(), source, target); err != nil {
				t.Fatal(err)
			}
			options := replica.Options{PartSize: 5 << 20, Workers: 4}
			result, err := replica.Pass(t.Context(), source, target, options)
			if !errors.Is(err, s3.ErrFull) {
				t.Errorf("after %+v: %v", result.Progress, err)
			}
			for upload := range target.app.ListIncompleteUploads(t.Context(), "bucket", "", true) {
				t.Errorf("upload %+v is left", upload)
			}
			disk.Resize(512)
			// A server looks at its disk from time to time.
			await.Until(t, await.HangTimeout, "a pass comes to its end", func() (bool, string) {
				_, err := replica.Pass(t.Context(), source, target, options)
				return err == nil, fmt.Sprint(err)
			})
			same(t, source, target)
		})
	}
}
