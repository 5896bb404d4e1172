package miniotest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/test/await"
)

// TestAServerReportsWhatClientsRemove, and what is set aside can be read. A delete marker that is created is not
// reported as a removal.
func TestAServerReportsWhatClientsRemove(t *testing.T) {
	t.Parallel()
	source := newSide(t, 1)
	source.bucket(t, "plain")
	source.versioned(t, "versioned")
	source.bucket(t, "emptied")
	var mu sync.Mutex
	heard := map[s3.Removal]time.Time{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- source.Hear(ctx, func(removal s3.Removal) {
			mu.Lock()
			defer mu.Unlock()
			at := removal.At
			removal.At = time.Time{}
			heard[removal] = at
		})
	}()
	// A server may keep events back until there are enough.
	echoed := func(name string) {
		t.Helper()
		key := name + "/" + strings.Repeat("x", 200)
		await.Until(t, await.HangTimeout, "the echo is heard", func() (bool, string) {
			if err := source.Echo(t.Context(), "plain", key); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for removal := range heard {
				if removal.Key == key && removal.Nothing {
					return true, ""
				}
			}
			return false, fmt.Sprint(heard, len(ended))
		})
	}
	echoed("connected")
	const key = "a b+c%20/ü&x=y"
	source.put(t, "plain", key, "x", minio.PutObjectOptions{})
	source.put(t, "plain", "kept", "content", minio.PutObjectOptions{})
	source.put(t, "versioned", "key", "first", minio.PutObjectOptions{})
	source.put(t, "versioned", "key", "second", minio.PutObjectOptions{})
	kept, err := source.VersionsOf(t.Context(), "plain", "kept")
	if err != nil {
		t.Fatal(err)
	}
	versions, err := source.VersionsOf(t.Context(), "versioned", "key")
	if err != nil || len(versions) != 2 {
		t.Fatal(versions, err)
	}
	source.remove(t, "versioned", "key", "") // makes a delete marker
	source.remove(t, "versioned", "key", versions[0].ID)
	source.remove(t, "plain", key, "")
	if err := source.RemoveBucket(t.Context(), "emptied"); err != nil {
		t.Fatal(err)
	}
	want := []s3.Removal{{Bucket: "versioned", Key: "key", ID: versions[0].ID}, {Bucket: "plain", Key: key, ID: s3.NullVersion}, {Bucket: "emptied"}}
	echoed("at the end")
	mu.Lock()
	defer mu.Unlock()
	maps.DeleteFunc(heard, func(removal s3.Removal, _ time.Time) bool { return removal.Nothing })
	for _, removal := range want {
		if at, is := heard[removal]; !is || at.Before(versions[0].Modified) {
			t.Errorf("of %+v is heard %s", removal, at)
		}
	}
	if len(heard) != len(want) {
		t.Errorf("heard is %+v", heard)
	}
	if err := source.SetAside(t.Context(), "plain", kept[0], "aside"); err != nil {
		t.Fatal(err)
	}
	aside, err := source.VersionsOf(t.Context(), "aside", "plain/kept/null")
	if err != nil || len(aside) != 1 || aside[0].Size != kept[0].Size {
		t.Errorf("set aside is %+v, %v", aside, err)
	}
}
