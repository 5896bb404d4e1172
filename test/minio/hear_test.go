package miniotest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/test/await"
)

// TestAServerReportsWhatClientsRemove. A delete marker that is created is not reported as a removal.
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
		ended <- source.ListenForRemovals(ctx, func(removal s3.Removal) {
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
			if err := source.TriggerEvent(t.Context(), "plain", key); err != nil {
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
	source.put(t, "versioned", "key", "first", minio.PutObjectOptions{})
	source.put(t, "versioned", "key", "second", minio.PutObjectOptions{})
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
}

// TestVersionsAreSetAsideInABucketOfEKCOs: each under a name of its own, and in none that a client made.
func TestVersionsAreSetAsideInABucketOfEKCOs(t *testing.T) {
	t.Parallel()
	store := newSide(t, 1)
	store.bucket(t, "plain")
	store.bucket(t, "taken")
	if err := store.app.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	only := func(bucket, key string) s3.Version {
		t.Helper()
		versions, err := store.VersionsOf(t.Context(), bucket, key)
		if err != nil || len(versions) != 1 {
			t.Fatal(versions, err)
		}
		return versions[0]
	}
	with := minio.PutObjectOptions{ContentType: "text/csv", UserMetadata: map[string]string{"Colour": "blue"}, UserTags: map[string]string{"case": "17"}}
	for _, content := range []string{"first", "second", "second"} {
		store.put(t, "plain", "key", content, with)
		v := only("plain", "key")
		for range 2 {
			if err := store.SetAside(t.Context(), "plain", v, "aside"); err != nil {
				t.Fatal(err)
			}
		}
		if got := store.content(t, "aside", only("aside", s3.AsideName("plain", v)).Key, ""); got != content {
			t.Errorf("set aside is %q instead of %q", got, content)
		}
		is, err := store.Describe(t.Context(), "aside", only("aside", s3.AsideName("plain", v)))
		if was, failed := store.Describe(t.Context(), "plain", v); errors.Join(err, failed) != nil || !reflect.DeepEqual(is, was) || was.Tags["case"] != "17" {
			t.Errorf("%v, %v: set aside with %+v instead of %+v", err, failed, is, was)
		}
	}
	store.versioned(t, "versioned")
	store.put(t, "versioned", "key", "text", minio.PutObjectOptions{})
	store.remove(t, "versioned", "key", "") // adds a delete marker, which has nothing that could be kept
	versions, err := store.VersionsOf(t.Context(), "versioned", "key")
	if err != nil || len(versions) != 2 || !versions[0].DeleteMarker {
		t.Fatal(versions, err)
	}
	if err := store.SetAside(t.Context(), "versioned", versions[0], "aside"); err != nil {
		t.Error(err)
	}
	settings, err := store.Settings(t.Context(), "aside")
	if listed := someOf(t, store, "aside", 10); err != nil || !s3.IsAside(settings) || len(listed) != 3 {
		t.Errorf("%v, %v, and set aside is %v", err, settings, listed)
	}
	if err := store.SetAside(t.Context(), "plain", only("plain", "key"), "taken"); !errors.Is(err, s3.ErrTaken) {
		t.Errorf("in a client's bucket: %v", err)
	}
	long := strings.Repeat(strings.Repeat("x", 200)+"/", 5) + "key"
	store.put(t, "plain", long, "content", minio.PutObjectOptions{})
	if err := store.SetAside(t.Context(), "plain", only("plain", long), "aside"); !errors.As(err, new(s3.Refusal)) {
		t.Errorf("a long key: %v", err)
	}
	store.put(t, "locked", "key", "content", minio.PutObjectOptions{LegalHold: minio.LegalHoldEnabled, SendContentMd5: true})
	if err := store.Remove(t.Context(), "locked", only("locked", "key")); !errors.Is(err, s3.ErrLocked) {
		t.Errorf("a locked version: %v", err)
	}
}
