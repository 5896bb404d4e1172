package miniotest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// answer is the status of a server's health page.
func answer(t *testing.T, address, page string) int {
	t.Helper()
	client := http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + page)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASingleServerKeepsItsDataWhenItIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	store := miniotest.Start(t, programs, 1)
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"one": store})
	mc.Run("mb", "--with-versioning", "one/bucket")
	mc.Run("cp", file(t, "first"), "one/bucket/a key")
	mc.Run("cp", file(t, "second"), "one/bucket/a key")
	mc.Run("rm", "one/bucket/a key")
	store.Kill(0)
	if store.Running(0) {
		t.Fatal("it runs on")
	}
	store.Run(0)
	store.WaitHealthy()
	versions := mc.Versions("one/bucket")
	if len(versions) != 3 || !versions[0].DeleteMarker || versions[1].Size != 6 || versions[2].Size != 5 || versions[2].VersionID == "" {
		t.Errorf("versions %+v", versions)
	}
	if content := mc.Run("cat", "--vid", versions[2].VersionID, "one/bucket/a key"); content != "first" {
		t.Errorf("the first version is %q", content)
	}
}

func TestSixServersAreOneStoreWhileFourOfThemRun(t *testing.T) {
	t.Parallel()
	store := miniotest.Start(t, programs, 6)
	single := miniotest.Start(t, programs, 1)
	mc := miniotest.NewClient(t, programs, map[string]*miniotest.Store{"six": store, "one": single})
	mc.Run("mb", "six/bucket", "one/bucket")
	mc.Run("cp", file(t, "content"), "six/bucket/key")
	store.Kill(5)
	store.Stop(4)
	mc.Run("cp", file(t, "content"), "six/bucket/written without two")
	if diff := mc.Diff("six/bucket", "one/bucket"); !strings.Contains(diff, "written without two") {
		t.Errorf("diff is %q", diff)
	}
	store.Kill(3)
	await.Until(t, await.HangTimeout, "three of six cannot be written to", func() (bool, string) {
		status := answer(t, store.Address(0), "/minio/health/cluster")
		return status == http.StatusServiceUnavailable, http.StatusText(status)
	})
	for _, id := range []int{3, 4, 5} {
		store.Run(id)
	}
	store.WaitHealthy()
	mc.Run("cp", file(t, "content"), "one/bucket/key")
	mc.Run("cp", file(t, "content"), "one/bucket/written without two")
	if diff := mc.Diff("six/bucket", "one/bucket"); diff != "" {
		t.Errorf("diff is %q", diff)
	}
}
