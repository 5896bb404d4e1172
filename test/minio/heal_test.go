package miniotest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
		answer, err := servers.Health(context.Background(), store.Address(id), question)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := ask(0, client.WithoutYou); !answer.Yes || answer.Healing != 0 {
		t.Errorf("before the drive is noticed, another server says %+v", answer)
	}
	await.Until(t, time.Minute, "the others say that a drive is restored", func() (bool, string) {
		answer := ask(0, client.WithoutYou)
		return answer.Healing == 1 && !answer.Yes && answer.Code == 412, fmt.Sprintf("%+v", answer)
	})
	began := time.Now()
	own, now := ask(5, client.WithoutYou), ask(0, client.Now)
	if have := objectsOn(t, store.Directory(5), "bucket"); have == objects {
		t.Fatalf("all %d objects were restored before anybody could be asked", have)
	}
	if own.Healing != 0 || now.Healing != 0 || !now.Yes {
		t.Errorf("the server whose drive it is says %+v, another one of now %+v", own, now)
	}
	await.Until(t, time.Minute, "nobody says so any more", func() (bool, string) {
		answer := ask(0, client.WithoutYou)
		return answer.Healing == 0 && answer.Yes, fmt.Sprintf("%+v", answer)
	})
	if have := objectsOn(t, store.Directory(5), "bucket"); have != objects {
		t.Errorf("it has %d of %d objects", have, objects)
	}
	t.Logf("it was noticed %s after all servers were healthy, and %d objects were restored in %s", began.Sub(healthy), objects, time.Since(began))
	if after := began.Sub(healthy); after > 20*time.Second {
		t.Errorf("it was noticed after %s; EKCO takes the data for restored when nothing has been for 30 s", after)
	}
}

// TestWhatHealingLeftOutIsFoundAndMadeWhole: that nobody heals any more does not say that all
// is there.
func TestWhatHealingLeftOutIsFoundAndMadeWhole(t *testing.T) {
	const objects = 60
	store := miniotest.Start(t, programs, 6)
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"six": store})
	mc.Run("mb", "six/bucket")
	write(t, store.Address(0), "bucket", objects)
	heal := func(id int) s3.HealPass {
		t.Helper()
		one, err := s3.NewClient(s3.Endpoint{Address: store.Address(id), Credentials: s3.Credentials{AccessKey: miniotest.AccessKey, SecretKey: miniotest.SecretKey}}, s3.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		told := int64(0)
		pass, err := one.Heal(t.Context(), func(items int64) { told = items })
		if err != nil || told != pass.Items || pass.Items < objects+1 {
			t.Fatalf("it came to %+v, of which %d were told: %v", pass, told, err)
		}
		return pass
	}
	if pass := heal(0); !pass.Whole() {
		t.Errorf("before anything is lost it came to %+v", pass)
	}

	entries, err := os.ReadDir(filepath.Join(store.Directory(5), "bucket"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries[:objects/2] {
		if err := os.RemoveAll(filepath.Join(store.Directory(5), "bucket", entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for id := range 6 {
		answer, err := client.NewHTTP().Health(t.Context(), store.Address(id), client.WithoutYou)
		if err != nil || !answer.Yes || answer.Healing != 0 {
			t.Errorf("with objects lost, server %d says %+v, %v", id, answer, err)
		}
	}
	if pass := heal(1); !pass.Whole() {
		t.Errorf("what was lost is not made whole: %+v", pass)
	}
	if have := objectsOn(t, store.Directory(5), "bucket"); have != objects {
		t.Errorf("the drive has %d of %d objects", have, objects)
	}

	store.Stop(5)
	if pass := heal(2); pass.Whole() || len(pass.Lacking) < objects {
		t.Errorf("with a drive away it came to %d lacking of %d", len(pass.Lacking), pass.Items)
	} else {
		for name, lacks := range pass.Lacking {
			t.Logf("%s: %s", name, lacks)
			break
		}
	}
}
