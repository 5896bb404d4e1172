package minio_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/podexec"
)

// onDrive runs what is run in pods on this machine, with a directory as /data.
type onDrive struct {
	minio.Servers
	dir string
}

func (o onDrive) Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	if (pod != podexec.Pod{Namespace: "minio", Name: "minio-1", Container: "server"}) {
		return nil, nil, 0, fmt.Errorf("there is no pod %+v", pod)
	}
	for i := range argv {
		if argv[i] == "/data" {
			argv[i] = o.dir
		}
	}
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); cmd.ProcessState == nil {
		return nil, nil, 0, err
	}
	return out.Bytes(), problems.Bytes(), cmd.ProcessState.ExitCode(), nil
}

func TestObjectsBelowOthersAreFoundOnADrive(t *testing.T) {
	objects := kubesim.NewObjects()
	objects.Put(minio.SinglePodRef("minio", "minio-1"), `{"spec":{
		"volumes":[{"name":"tmp"},{"name":"data","persistentVolumeClaim":{"claimName":"c"}}],
		"containers":[{"name":"side","volumeMounts":[{"name":"tmp","mountPath":"/data"}]},{"name":"server","volumeMounts":[{"name":"tmp","mountPath":"/tmp"},{"name":"data","mountPath":"/data"}]},
			{"name":"backup","volumeMounts":[{"name":"data","mountPath":"/backup"}]}]}}`)
	dir := t.TempDir()
	client := minio.NewClient(objects, onDrive{dir: dir}, "minio")
	for _, file := range []string{
		".minio.sys/buckets/b/xl.meta", ".minio.sys/buckets/b/below/xl.meta", "lost+found/x/xl.meta",
		"b-1/alone/xl.meta", "b-1/alone/6d5e0c9e/part.1", "b-1/folder/of/many/xl.meta", "b-1/folder/xl.meta/xl.meta",
		"b-1/report/xl.meta", "b-1/report/2026.csv/xl.meta", "b-1/report/q/1/deep/xl.meta", "b-1/report/2026.csv/page/xl.meta",
		"b-1/report/.hidden/xl.meta", "b-1/report/..dots/xl.meta", "b-1/report/folder__XLDIR__/xl.meta",
		"b-2/old/xl.json", "b-2/old/a *\nb/xl.json",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := client.Nested(t.Context(), "minio-1")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b minio.Nested) int { return strings.Compare(a.Bucket+a.Key, b.Bucket+b.Key) })
	want := []minio.Nested{
		{"b-1", "report/..dots", "report"},
		{"b-1", "report/.hidden", "report"},
		{"b-1", "report/2026.csv", "report"},
		{"b-1", "report/2026.csv/page", "report/2026.csv"},
		{"b-1", "report/folder/", "report"},
		{"b-1", "report/q/1/deep", "report"},
		{"b-2", "old/a *\nb", "old"},
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q\nwant  %q", found, want)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if found, err := client.Nested(t.Context(), "minio-1"); err == nil {
		t.Errorf("without a drive it finds %q", found)
	}
	if found, err := client.Nested(t.Context(), "minio-2"); err == nil {
		t.Errorf("without a pod it finds %q", found)
	}
}
