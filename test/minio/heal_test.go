package miniotest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	client "github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// objectsOn returns how many objects of a bucket are on a drive.
func objectsOn(t *testing.T, drive, bucket string) (count int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(drive, bucket), func(path string, _ os.DirEntry, err error) error {
		if filepath.Base(path) == "xl.meta" {
			count++
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// write writes objects that take a moment to be restored.
func write(t *testing.T, address, bucket string, objects int) {
	t.Helper()
	writer, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("content ", 5000)
	var all sync.WaitGroup
	for first := range 10 {
		all.Go(func() {
			for i := first; i < objects; i += 10 {
				if _, err := writer.PutObject(t.Context(), bucket, fmt.Sprint(i), strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestWhatServersSayOfADriveThatWasReplaced is what EKCO goes by when it waits for the data of
// a replica: who says that it is restored, when, and that nobody says so at first.
func TestWhatServersSayOfADriveThatWasReplaced(t *testing.T) {
	t.Parallel()
	const objects = 250
	store := miniotest.Start(t, programs, 6)
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"six": store})
	mc.Run("mb", "six/bucket")
	write(t, store.Address(0), "bucket", objects)
	store.Stop(5)
	if err := os.RemoveAll(store.Directory(5)); err != nil {
		t.Fatal(err)
	}
	store.Run(5)
	store.WaitHealthy()

	healthy, servers := time.Now(), client.NewHTTP()
	ask := func(id int, question client.Question) client.Answer {
		t.Helper()
		for began := time.Now(); ; {
			answer, err := servers.Health(context.Background(), store.Address(id), question)
			if err == nil {
				return answer
			}
			if time.Since(began) > await.HangTimeout { // a busy machine may answer late
				t.Fatal(err)
			}
		}
	}
	if answer := ask(0, client.WithoutYou); answer.Healing == 0 && !answer.Yes { // a busy machine may be late
		t.Errorf("before the drive is noticed, another server says %+v", answer)
	}
	// Without a pause: the drive is restored within a second or two.
	for deadline := time.Now().Add(await.HangTimeout); ; {
		answer := ask(0, client.WithoutYou)
		if answer.Healing == 1 && !answer.Yes && answer.Code == 412 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody said that a drive is restored; the last answer is %+v", answer)
		}
	}
	began := time.Now()
	own, now := ask(5, client.WithoutYou), ask(0, client.Now)
	if own.Healing != 0 || now.Healing != 0 || !now.Yes {
		t.Errorf("the server whose drive it is says %+v, another one of now %+v", own, now)
	}
	await.Until(t, await.HangTimeout, "nobody says so any more", func() (bool, string) {
		answer := ask(0, client.WithoutYou)
		return answer.Healing == 0 && answer.Yes, fmt.Sprintf("%+v", answer)
	})
	if have := objectsOn(t, store.Directory(5), "bucket"); have != objects {
		t.Errorf("it has %d of %d objects", have, objects)
	}
	t.Logf("it was noticed %s after all servers were healthy, and %d objects were restored in %s; EKCO checks all data when none was restored for 30 s", began.Sub(healthy), objects, time.Since(began))

	t.Run("what it lacks then, nobody says, and a pass finds and repairs", func(t *testing.T) { passRepairs(t, store, objects) })
	t.Run("what servers say of passes", func(t *testing.T) { passesAreTold(t, store) })
	store.Stop(5)
	passed, err := pass(t, store)
	if unproven := (*client.UnprovenError)(nil); !errors.As(err, &unproven) {
		t.Errorf("with a drive away a pass came to %+v: %v", passed, err)
	}
	t.Logf("with a drive away: %v", err)
}

// healer is a server of the store as EKCO asks it.
func healer(t *testing.T, store *miniotest.Store, id int, secret string) client.Healer {
	t.Helper()
	healer, err := client.S3{}.Healer(store.Address(id), client.Credentials{AccessKey: miniotest.AccessKey, SecretKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(healer.Close)
	return healer
}

// pass has one server look at all objects, and another one list them.
func pass(t *testing.T, store *miniotest.Store) (client.Passed, error) {
	t.Helper()
	return passOf(t, store, 6)
}

// passOf is that of a store of so many drives.
func passOf(t *testing.T, store *miniotest.Store, drives int) (client.Passed, error) {
	t.Helper()
	return client.Pass{
		Scanner: healer(t, store, 0, miniotest.SecretKey), Lister: healer(t, store, 1, miniotest.SecretKey), Drives: drives,
		Began: func(string) error { return nil }, Progress: func(client.Passed) error { return nil },
	}.Run(t.Context())
}

// passRepairs removes half of what one drive has of a bucket.
func passRepairs(t *testing.T, store *miniotest.Store, objects int) {
	for i := range objects / 2 {
		if err := os.RemoveAll(filepath.Join(store.Directory(5), "bucket", fmt.Sprint(2*i))); err != nil {
			t.Fatal(err)
		}
	}
	if have := objectsOn(t, store.Directory(5), "bucket"); have != objects-objects/2 {
		t.Fatalf("%d objects are left", have)
	}
	for id := range 6 {
		answer, err := client.NewHTTP().Health(t.Context(), store.Address(id), client.WithoutYou)
		if err != nil || !answer.Yes || answer.Healing != 0 {
			t.Errorf("server %d says %+v, %v", id, answer, err)
		}
	}
	for _, repaired := range []int{objects / 2, 0} {
		began := time.Now()
		passed, err := pass(t, store)
		t.Logf("%+v in %s", passed, time.Since(began))
		if err != nil || passed.Repaired != repaired || passed.Lacking != 0 || passed.Unseen != 0 || passed.Items < objects+1 {
			t.Errorf("a pass: %+v, %v; want %d repaired", passed, err, repaired)
		}
		if have := objectsOn(t, store.Directory(5), "bucket"); have != objects {
			t.Errorf("after a pass the drive has %d of %d objects", have, objects)
		}
	}
}

// passesAreTold is what EKCO goes by to tell its own pass from others, and one that came to its
// end from one that did not.
func passesAreTold(t *testing.T, store *miniotest.Store) {
	wrong := healer(t, store, 0, "wrong-secret")
	if _, err := wrong.BeginHeal(t.Context()); !errors.Is(err, s3.ErrDenied) {
		t.Errorf("with another secret: %v", err)
	}
	requestIDIsTime(t, store.Address(2))
	moreThanAPassHolds(t, store.Address(0))
	one := healer(t, store, 2, miniotest.SecretKey)
	begun, err := one.BeginHeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.BeginHeal(t.Context()); !errors.Is(err, s3.ErrHealing) {
		t.Errorf("a second pass: %v", err)
	}
	// Whoever is asked asks the server that makes the pass.
	if _, err := healer(t, store, 3, miniotest.SecretKey).HealNews(t.Context(), begun.Token); err != nil {
		t.Errorf("another server: %v", err)
	}
	for _, unknown := range []string{"6d5e0c9e-0000-4000-8000-000000000000:2", "6d5e0c9e-0000-4000-8000-000000000000:4"} {
		if _, err := one.HealNews(t.Context(), unknown); !errors.Is(err, s3.ErrForgotten) {
			t.Errorf("pass %s, of which nobody knows: %v", unknown, err)
		}
	}
	mc := miniotest.NewClientAt(t, programs, map[string]string{"zero": "http://" + store.Address(0), "two": "http://" + store.Address(2)})
	mc.Run("admin", "heal", "--recursive", "--force-stop", "two")
	await.Until(t, await.HangTimeout, "a pass that was stopped is forgotten", func() (bool, string) {
		news, err := one.HealNews(t.Context(), begun.Token)
		return errors.Is(err, s3.ErrForgotten), fmt.Sprintf("ended %t, %v", news.Ended, err)
	})
	passed, err := client.Pass{
		Scanner: healer(t, store, 0, miniotest.SecretKey), Lister: healer(t, store, 1, miniotest.SecretKey), Drives: 6,
		Began: func(string) error {
			mc.Run("admin", "heal", "--recursive", "--force-stop", "zero")
			return nil
		},
		Progress: func(client.Passed) error { return nil },
	}.Run(t.Context())
	if err == nil {
		t.Errorf("a pass that was stopped counts as %+v", passed)
	}
}

// requestIDIsTime: EKCO compares this time with the start of a pass, to tell whether the pass is its own.
func requestIDIsTime(t *testing.T, address string) {
	t.Helper()
	before := time.Now().Round(0)
	response, err := http.Get("http://" + address + "/minio/health/live")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	id := response.Header.Get("X-Amz-Request-Id")
	nanoseconds, err := strconv.ParseInt(id, 16, 64)
	if at := time.Unix(0, nanoseconds); err != nil || at.Before(before) || at.After(time.Now().Round(0)) {
		t.Errorf("a request that was sent after %s has ID %q, which is %s, %v", before, id, at, err)
	}
}

// moreThanAPassHolds writes so many objects that a pass cannot end before a client reads its results:
// it waits when 1,000 are unread (MinIO's maxUnconsumedHealResultItems). One request writes all of them.
func moreThanAPassHolds(t *testing.T, address string) {
	t.Helper()
	writer, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	const bucket, objects = "many", 1100
	if err := writer.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	all := make(chan minio.SnowballObject, objects)
	for i := range objects {
		all <- minio.SnowballObject{Key: fmt.Sprint(i), Size: 1, Content: strings.NewReader("x")}
	}
	close(all)
	if err := writer.PutObjectsSnowball(t.Context(), bucket, minio.SnowballOptions{InMemory: true}, all); err != nil {
		t.Fatal(err)
	}
}
