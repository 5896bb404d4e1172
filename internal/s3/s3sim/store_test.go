package s3sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func list(t *testing.T, store *s3sim.Store, bucket string) (versions []s3.Version) {
	t.Helper()
	for v, err := range store.Versions(t.Context(), bucket, "") {
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	return versions
}

func TestVersionsMarkersAndTheNullVersionAreKeptAsMinIODoes(t *testing.T) {
	store := s3sim.New()
	store.AddBucket("bucket", nil)
	store.Write("bucket", "key", "one", s3.Attributes{}, now)
	store.Write("bucket", "key", "two", s3.Attributes{}, now.Add(1))
	if versions := list(t, store, "bucket"); len(versions) != 1 || versions[0].ID != s3.NullVersion {
		t.Errorf("without versioning: %+v", versions)
	}
	if err := store.Set(t.Context(), "bucket", s3.Versioning, s3.VersioningEnabled); err != nil {
		t.Fatal(err)
	}
	store.Write("bucket", "key", "three", s3.Attributes{}, now.Add(2))
	store.Delete("bucket", "key", now.Add(3))
	versions := list(t, store, "bucket")
	if len(versions) != 3 || !versions[0].DeleteMarker || versions[1].Size != 5 || versions[2].ID != s3.NullVersion {
		t.Errorf("with versioning: %+v", versions)
	}
	store.DeleteVersion("bucket", "key", versions[0].ID)
	if versions := list(t, store, "bucket"); len(versions) != 2 || versions[0].DeleteMarker {
		t.Errorf("without the marker: %+v", versions)
	}
}

func TestWhatIsRefusedIsToldAsAServerDoes(t *testing.T) {
	store := s3sim.New()
	store.AddBucket("bucket", s3.Settings{s3.Versioning: s3.VersioningEnabled})
	v := store.Write("bucket", "key", "one", s3.Attributes{}, now)
	if err := store.Put(t.Context(), "bucket", v, nil, strings.NewReader("one"), true); !errors.Is(err, s3.ErrExists) {
		t.Errorf("a version that is there: %v", err)
	}
	if err := store.Put(t.Context(), "bucket", v, nil, strings.NewReader("two"), false); !errors.Is(err, s3.ErrDigest) {
		t.Errorf("other content: %v", err)
	}
	other := v
	other.ETag = "other"
	if _, err := store.Open(t.Context(), "bucket", other, 0, 3); !errors.Is(err, s3.ErrGone) {
		t.Errorf("another ETag: %v", err)
	}
	if _, err := store.Settings(t.Context(), "other"); !errors.Is(err, s3.ErrGone) {
		t.Errorf("another bucket: %v", err)
	}
	store.SetDown(true)
	if _, err := store.Buckets(t.Context()); !errors.Is(err, s3sim.ErrUnavailable) {
		t.Errorf("a store that is away: %v", err)
	}
}
