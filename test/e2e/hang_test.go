package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
)

// pid returns the process id of a part of the control plane.
func (c *cluster) pid(name string) int {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, "pids"))
	if err != nil {
		c.t.Fatal(err)
	}
	var parts struct {
		Processes []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"processes"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		c.t.Fatal(err)
	}
	for _, part := range parts.Processes {
		if part.Name == name {
			return part.PID
		}
	}
	c.t.Fatalf("the control plane has no %s", name)
	return 0
}

// A server that hangs keeps its connections open: nothing fails by itself.
func TestAnAPIServerThatHangsIsNoticed(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	server := c.pid("kube-apiserver")
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(server, syscall.SIGCONT) }()
	eventually(t, await.HangTimeout, "EKCO notices", func() (bool, string) {
		ready, answer := get("http://" + o.address + "/readyz")
		return !ready && !o.status().API.LostAt.IsZero(), answer
	})
	if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, await.HangTimeout, "EKCO sees that it is back", func() (bool, string) {
		return o.status().API.LostAt.IsZero(), ""
	})
	o.waitReady()
}
