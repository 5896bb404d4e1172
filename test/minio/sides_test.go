package miniotest_test

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// side is a store as EKCO and as an application see it.
type side struct {
	*s3.Client
	app   *minio.Core
	store *miniotest.Store
}

func newSide(t testing.TB, servers int, env ...string) side {
	t.Helper()
	return sideOf(t, miniotest.Start(t, programs, servers, env...))
}

func sideOf(t testing.TB, store *miniotest.Store) side {
	t.Helper()
	return side{ekcoAt(t, store.Address(0)), appAt(t, store.Address(0)), store}
}

// ekcoAt is EKCO's client of a store at an address.
func ekcoAt(t testing.TB, address string) *s3.Client {
	t.Helper()
	client, err := s3.NewClient(s3.Endpoint{
		Address: address, Credentials: s3.Credentials{AccessKey: miniotest.AccessKey, SecretKey: miniotest.SecretKey},
	}, s3.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// appAt is an application's client of a store at an address.
func appAt(t testing.TB, address string) *minio.Core {
	t.Helper()
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	app, err := minio.NewCore(address, &minio.Options{
		Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, ""), Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// bucket makes a bucket on a side.
func (s side) bucket(t testing.TB, name string) {
	t.Helper()
	if err := s.app.MakeBucket(t.Context(), name, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
}

// versioned makes a bucket that keeps versions.
func (s side) versioned(t testing.TB, name string) {
	t.Helper()
	s.bucket(t, name)
	if err := s.app.EnableVersioning(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// put stores an object as an application does, and returns the id of the version.
func (s side) put(t testing.TB, bucket, key, content string, options minio.PutObjectOptions) string {
	t.Helper()
	info, err := s.app.Client.PutObject(t.Context(), bucket, key, bytes.NewReader([]byte(content)), int64(len(content)), options)
	if err != nil {
		t.Fatal(err)
	}
	return info.VersionID
}

// remove removes a version of an object, or with an empty id the object as an
// application does.
func (s side) remove(t testing.TB, bucket, key, version string) {
	t.Helper()
	if err := s.app.RemoveObject(t.Context(), bucket, key, minio.RemoveObjectOptions{VersionID: version}); err != nil {
		t.Fatal(err)
	}
}

// content reads a version of an object.
func (s side) content(t testing.TB, bucket, key, version string) string {
	t.Helper()
	object, _, _, err := s.app.GetObject(t.Context(), bucket, key, minio.GetObjectOptions{VersionID: version})
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	content, err := io.ReadAll(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// copied makes the target equal to the source, without the settings at the end.
func copied(t *testing.T, source, target s3.Target, options replica.Options) replica.Result {
	t.Helper()
	if warnings, err := replica.Prepare(t.Context(), source, target); err != nil || len(warnings) > 0 {
		t.Fatalf("prepare: %v, %v", warnings, err)
	}
	result, err := replica.Pass(t.Context(), source, target, options)
	if err != nil {
		t.Fatalf("pass: %v, %+v", err, result)
	}
	return result
}

// same fails unless all objects are the same on both sides.
func same(t *testing.T, source, target s3.Source) replica.Report {
	t.Helper()
	report, err := replica.Compare(t.Context(), source, target, replica.CompareOptions{Sample: replica.DefaultSample})
	if err != nil || !report.Same() {
		t.Errorf("compare: %v, %+v", err, report)
	}
	for _, store := range []s3.Source{source, target} {
		eachAlone(t, store)
	}
	return report
}

// eachAlone fails unless an object that is listed alone is as in the list of its bucket. It
// looks at some of each bucket.
func eachAlone(t *testing.T, store s3.Source) {
	t.Helper()
	buckets, err := store.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range buckets {
		for key, want := range someOf(t, store, bucket, 50) {
			have, err := store.VersionsOf(t.Context(), bucket, key)
			for i := range min(len(have), len(want)) {
				if want[i].Attributes == nil { // as where an object of the list has some that it cannot tell
					have[i].Attributes = nil
				}
			}
			if err != nil || !reflect.DeepEqual(have, want) {
				t.Errorf("%q alone in bucket %s is %+v, %v, and in the list %+v", key, bucket, have, err, want)
			}
		}
	}
}

// someOf returns the first objects of a bucket with their versions.
func someOf(t *testing.T, store s3.Source, bucket string, count int) map[string][]s3.Version {
	t.Helper()
	some := make(map[string][]s3.Version)
	for v, err := range store.Versions(t.Context(), bucket, "") {
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == count && some[v.Key] == nil {
			break
		}
		some[v.Key] = append(some[v.Key], v)
	}
	return some
}

// sameForMC fails unless mc lists the same versions of a bucket on both sides.
func sameForMC(t *testing.T, mc *miniotest.Client, bucket string) {
	t.Helper()
	ours, theirs := mc.Versions("target/"+bucket), mc.Versions("source/"+bucket)
	if !slices.Equal(ours, theirs) {
		t.Errorf("mc lists of bucket %s\n%+v\ninstead of\n%+v", bucket, ours, theirs)
	}
	if diff := mc.Diff("source/"+bucket, "target/"+bucket); diff != "" {
		t.Errorf("mc diff of bucket %s is\n%s", bucket, diff)
	}
}
