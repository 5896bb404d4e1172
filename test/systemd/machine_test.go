package systemdtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/rig"
)

// ekco is the program.
var ekco string

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{
		Fetch: []string{"./install.sh", rig.EKCOModules},
		Prepare: func(ctx context.Context, dir string) error {
			ekco = filepath.Join(dir, "ekco")
			return rig.BuildEKCO(ctx, "../..", ekco)
		},
		Parallel: 4, // which mostly wait for systemd
	})
}

// machine is one that systemd has booted. It ends with its test.
type machine struct {
	t     *testing.T
	first int
}

func boot(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"units", "programs"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "programs", "ekco")
	if output, err := exec.Command("cp", ekco, link).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	unshare := child.Start(t, "unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child",
		"--propagation", "private", "./machine.sh", dir)
	m := &machine{t: t}
	await.Until(t, await.HangTimeout, "systemd and D-Bus run", func() (bool, string) {
		if !unshare.Running() {
			t.Fatalf("the machine ended:\n%s", unshare.Output)
		}
		if m.first = childOf(unshare.PID()); m.first == 0 {
			return false, unshare.Output.String()
		}
		said, code := m.run("systemctl", "is-active", "dbus.service", "kubelet.service")
		return code == 0, said + unshare.Output.String()
	})
	return m
}

// childOf returns the process that another one has started, 0 as long as it has none.
func childOf(parent int) int {
	id := strconv.Itoa(parent)
	content, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0
	}
	return pid
}

// run runs a command on the machine, and returns what it printed and its exit code.
func (m *machine) run(name string, args ...string) (said string, code int) {
	m.t.Helper()
	all := append([]string{"--target", strconv.Itoa(m.first), "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--", name}, args...)
	command := exec.CommandContext(m.t.Context(), "nsenter", all...)
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		m.t.Fatalf("%s: %v", command, err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// must is run for what has to succeed.
func (m *machine) must(name string, args ...string) string {
	m.t.Helper()
	said, code := m.run(name, args...)
	if code != 0 {
		m.t.Fatalf("%s %q: exit %d: %s", name, args, code, said)
	}
	return said
}
