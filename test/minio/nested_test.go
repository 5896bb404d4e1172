package miniotest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	client "github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// shells run what is run in the pods of a store: the shell of this machine, on a server's directory.
type shells struct {
	client.Servers
	store *miniotest.Store
}

func (s shells) Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	var id int
	if _, err := fmt.Sscanf(pod.Name, "ha-minio-%d", &id); err != nil {
		return nil, nil, 0, err
	}
	argv[len(argv)-1] = s.store.Directory(id)
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = &problems
	stdout, err = cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, problems.Bytes(), exit.ExitCode(), nil
	}
	return stdout, nil, 0, err
}

// nestedOn returns how many objects below others EKCO finds on each server's drive.
func nestedOn(t *testing.T, store *miniotest.Store, servers int) (found []int) {
	t.Helper()
	objects := kubesim.NewObjects()
	api := client.NewClient(objects, shells{store: store}, "minio")
	for id := range servers {
		ref := client.PodRef("minio", id)
		objects.Put(ref, `{"spec":{"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"c"}}],"containers":[{"name":"minio","volumeMounts":[{"name":"d","mountPath":"/data"}]}]}}`)
		on, err := api.Nested(t.Context(), ref.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range on {
			if one != (client.Nested{Bucket: "bucket", Key: "report/2026.csv", Above: "report"}) {
				t.Errorf("on server %d it finds %+v", id, one)
			}
		}
		found = append(found, len(on))
	}
	return found
}

// TestAnObjectBelowAnotherIsOnlyOnItsDrives is why EKCO looks through drives: MinIO accepts both objects,
// lists one, and does not restore the other one on a new drive.
func TestAnObjectBelowAnotherIsOnlyOnItsDrives(t *testing.T) {
	t.Parallel()
	const servers = 4
	store := miniotest.Start(t, programs, servers)
	s := sideOf(t, store)
	s.bucket(t, "bucket")
	big := string(make([]byte, 300<<10)) // has a directory for its parts
	for key, content := range map[string]string{"report": big, "big/alone": big, "small/alone": "x"} {
		s.put(t, "bucket", key, content, minio.PutObjectOptions{})
	}
	want := func(when string, want ...int) {
		t.Helper()
		// MinIO answers when most drives have what it writes, and the last one follows.
		await.Until(t, await.HangTimeout, when, func() (bool, string) {
			found := nestedOn(t, store, servers)
			return fmt.Sprint(found) == fmt.Sprint(want), fmt.Sprintf("on the drives EKCO finds %v, want %v", found, want)
		})
	}
	want("without any", 0, 0, 0, 0)
	s.put(t, "bucket", "report/2026.csv", big, minio.PutObjectOptions{})
	want("with one", 1, 1, 1, 1)
	if _, listed := someOf(t, s, "bucket", 50)["report/2026.csv"]; listed {
		t.Error("MinIO lists it, so that nobody has to look for it")
	}

	store.Stop(3)
	if err := os.RemoveAll(store.Directory(3)); err != nil {
		t.Fatal(err)
	}
	store.Run(3)
	store.WaitHealthy()
	await.Until(t, await.HangTimeout, "MinIO has restored all that it can", func() (bool, string) {
		_, err := passOf(t, store, servers)
		return err == nil, fmt.Sprint(err)
	})
	if have := objectsOn(t, store.Directory(3), "bucket"); have != 3 {
		t.Errorf("the new drive has %d objects, want all 3 that are listed", have)
	}
	want("with a restored drive", 1, 1, 1, 0)

	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"four": store}) // as docs/minio.md says
	mc.Run("cp", "four/bucket/report/2026.csv", "four/bucket/report-2026.csv")
	mc.Run("rm", "four/bucket/report/2026.csv")
	want("renamed", 0, 0, 0, 0)
	if s.content(t, "bucket", "report-2026.csv", "") != big || s.content(t, "bucket", "report", "") != big {
		t.Error("an object has another content")
	}
}
