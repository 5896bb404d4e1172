package miniotest_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// disk is a disk of a size of its own. It needs root.
func disk(t *testing.T, megabytes int) (dir string, grow func(megabytes int)) {
	t.Helper()
	dir = t.TempDir()
	mount := func(flags uintptr, megabytes int) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%dm", megabytes)); err != nil {
			t.Fatalf("mount a disk of %d MB, which only root can do: %v", megabytes, err)
		}
	}
	mount(0, megabytes)
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir, func(megabytes int) {
		t.Helper()
		mount(syscall.MS_REMOUNT, megabytes)
	}
}

func TestAFullDiskEndsTheCopyAndAPassGoesOnOnceThereIsRoom(t *testing.T) {
	source := newSide(t, 1)
	source.bucket(t, "bucket")
	for i := range 20 {
		source.put(t, "bucket", fmt.Sprintf("a %02d", i), strings.Repeat("0123456789abcdef", 4<<16), minio.PutObjectOptions{})
	}
	source.put(t, "bucket", "b, in parts", strings.Repeat("0123456789abcdef", 48<<16), minio.PutObjectOptions{PartSize: 5 << 20})
	for name, first := range map[string]int{"while small objects are stored": 64, "while parts are": 112} {
		t.Run(name, func(t *testing.T) {
			dir, grow := disk(t, first)
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
			grow(512)
			// A server looks at its disk from time to time.
			await.Until(t, time.Minute, "a pass comes to its end", func() (bool, string) {
				_, err := replica.Pass(t.Context(), source, target, options)
				return err == nil, fmt.Sprint(err)
			})
			same(t, source, target)
		})
	}
}
