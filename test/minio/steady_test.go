package miniotest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// done waits until the client has done so many requests more, and returns what it did.
func done(t *testing.T, steady *miniotest.Steady, more int) miniotest.Did {
	t.Helper()
	from := steady.Did()
	await.Until(t, await.HangTimeout, "the client has gone on", func() (bool, string) {
		now := steady.Did()
		return now.Acknowledged+now.Failed >= from.Acknowledged+from.Failed+more, now.Failure
	})
	return steady.Did()
}

func TestASteadyClientGoesOnOverItsConnectionsAndNoticesWhatIsLostOrBack(t *testing.T) {
	t.Parallel()
	store := miniotest.Start(t, programs, 1)
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"one": store})
	mc.Run("mb", "one/bucket")
	proxy := miniotest.StartProxy(t)
	proxy.Lead(store.Address(0))
	steady := miniotest.StartSteady(t, proxy.Address(), "bucket", 200)
	if did := done(t, steady, 200); did.Failed > 0 || proxy.Established() != 4 {
		t.Errorf("%+v over %d connections", did, proxy.Established())
	}

	// As long as its server lives, nothing is noticed of where the Service leads.
	proxy.Lead()
	if did := done(t, steady, 100); did.Failed > 0 {
		t.Errorf("it failed %d times: %s", did.Failed, did.Failure)
	}
	store.Kill(0)
	await.Until(t, await.HangTimeout, "it meets nobody", func() (bool, string) { // at first connections are cut
		did := steady.Did()
		return did.Failed > 0 && strings.Contains(did.Failure, "refused"), did.Failure
	})
	store.Run(0)
	store.WaitHealthy()
	proxy.Lead(store.Address(0))
	before := steady.Did().Acknowledged
	await.Until(t, await.HangTimeout, "it is answered again", func() (bool, string) {
		did := steady.Did()
		return did.Acknowledged > before+100, did.Failure
	})
	did := steady.Stop()
	if did.Outage < 100*time.Millisecond {
		t.Errorf("the outage was %s", did.Outage)
	}
	t.Logf("%+v", did)
	if wrong := steady.Audit(store.Address(0)); len(wrong) > 0 {
		t.Errorf("the books are wrong: %q", wrong)
	}

	spoil(t, store.Address(0))
	wrong := strings.Join(steady.Audit(store.Address(0)), "\n")
	for _, want := range []string{"is not there, and was acknowledged as", "bytes, and was acknowledged as not there", `"stranger" exists, but this client did not write it`} {
		if !strings.Contains(wrong, want) {
			t.Errorf("it does not notice %q: %s", want, wrong)
		}
	}
}

// spoil deletes all that is there, and writes all that was deleted.
func spoil(t *testing.T, address string) {
	t.Helper()
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for object := range client.ListObjects(context.Background(), "bucket", minio.ListObjectsOptions{Recursive: true}) {
		there[object.Key] = true
		if err := client.RemoveObject(context.Background(), "bucket", object.Key, minio.RemoveObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range append(miniotest.SteadyKeys(), "stranger") {
		if there[key] {
			continue
		}
		if _, err := client.PutObject(context.Background(), "bucket", key, strings.NewReader("back"), 4, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
