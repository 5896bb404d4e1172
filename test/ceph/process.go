package ceph

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// spawner starts processes that the kernel ends when this process ends. The
// kernel watches the thread that started them, so one thread starts all and
// lives as long as they do.
type spawner struct {
	requests chan func()
	ended    chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.requests <- func() { result <- cmd.Start() }
	return <-result
}

// end ends the thread, after the processes.
func (s *spawner) end() {
	close(s.requests)
	<-s.ended
}

// daemon is a process of the cluster.
type daemon struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// daemon starts a program in the foreground, its output in a file.
func (c *Cluster) daemon(name string, argv ...string) *daemon {
	c.t.Helper()
	d := &daemon{name: name, log: filepath.Join(c.dir, name+".out"), done: make(chan struct{})}
	output, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer output.Close()
	// Not the test's context: it ends before the cleanups, which end the daemons in
	// an order of their own.
	d.cmd = exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = output, output
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.spawner.start(d.cmd); err != nil {
		c.t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(d.done)
		// How it ended is of no interest: the tests kill it.
		_ = d.cmd.Wait()
	}()
	return d
}

// kill ends the process at once, as a machine that loses power does.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// running reports whether the process has not ended.
func (d *daemon) running() bool {
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// showLog prints the end of the output.
func (d *daemon) showLog(t testing.TB) {
	content, err := os.ReadFile(d.log)
	if err != nil {
		t.Log(err)
		return
	}
	const enough = 3000
	if len(content) > enough {
		content = content[len(content)-enough:]
	}
	t.Logf("output of %s:\n%s", d.name, bytes.TrimSpace(content))
}
