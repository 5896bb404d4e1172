package nodetest

import (
	_ "embed"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

//go:embed machine.sh
var machineScript []byte

// machine is the simulated machine of a node: namespaces with their own root directory and network. Its processes end
// with the first one.
type machine struct {
	// life is the test with which the machine ends.
	life    testing.TB
	unshare *child.Process
	// first is the process with which all others end.
	first int
}

// startMachine starts the machine of a node whose directory exists. The machine ends with the test life.
func startMachine(life, tb testing.TB, dir, name, controlplane string) *machine {
	tb.Helper()
	script := filepath.Join(dir, "settings", "machine.sh")
	if err := os.WriteFile(script, machineScript, 0o700); err != nil {
		tb.Fatal(err)
	}
	ready := filepath.Join(dir, "settings", "ready")
	if err := os.RemoveAll(ready); err != nil {
		tb.Fatal(err)
	}
	m := &machine{life: life}
	m.unshare = child.Start(life, "unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child",
		"--propagation", "private", "bash", script, dir, name, controlplane)
	await.Until(tb, await.HangTimeout, "the machine of "+name+" has its root directory", func() (bool, string) {
		if !m.unshare.Running() {
			tb.Fatalf("it did not start:\n%s", m.unshare.Output)
		}
		_, err := os.Stat(ready)
		return err == nil, m.unshare.Output.String()
	})
	m.first = onlyChild(tb, m.unshare.PID())
	return m
}

// off powers the machine off.
func (m *machine) off(tb testing.TB) {
	tb.Helper()
	m.unshare.Kill()
	await.Until(tb, await.HangTimeout, "the machine's processes have ended", func() (bool, string) {
		err := syscall.Kill(m.first, 0)
		return err == syscall.ESRCH, "process " + strconv.Itoa(m.first)
	})
}

// program is a program on the machine. It runs until it is killed or the machine is off.
type program struct {
	*child.Process // the local process that waits for the program
	pid            int
}

// start starts a program on the machine.
func (m *machine) start(tb testing.TB, name string, args ...string) *program {
	tb.Helper()
	p := child.Start(m.life, "nsenter", m.within(append([]string{name}, args...))...)
	return &program{p, onlyChild(tb, p.PID())}
}

// within returns the arguments with which nsenter runs a command on the machine.
func (m *machine) within(command []string) []string {
	return append([]string{"--target", strconv.Itoa(m.first), "--mount", "--net", "--pid", "--uts", "--ipc", "--"}, command...)
}

// Kill kills the program, like a crash, and waits until its ports are free.
func (p *program) Kill() {
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // it fails if the program has ended
	p.Wait(await.HangTimeout)
}

// onlyChild returns the only process that the parent has started.
func onlyChild(tb testing.TB, parent int) (pid int) {
	tb.Helper()
	id := strconv.Itoa(parent)
	await.Until(tb, await.HangTimeout, "process "+id+" has a child", func() (bool, string) {
		content, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
		if err != nil {
			return false, err.Error()
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(content)))
		return err == nil, string(content)
	})
	return pid
}

// removeGroups removes a control group and those below it, after their processes have ended.
func removeGroups(tb testing.TB, name string) {
	tb.Helper()
	tops, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	unified, err := filepath.Glob("/sys/fs/cgroup/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	for _, top := range append(tops, unified...) {
		await.Until(tb, await.HangTimeout, top+" is removed", func() (bool, string) {
			if err := removeGroup(top); err != nil {
				return false, err.Error()
			}
			return true, ""
		})
	}
}

func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return syscall.Rmdir(dir)
}
