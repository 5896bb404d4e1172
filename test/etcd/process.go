package etcdtest

import (
	"bytes"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child that is ended by its own pid, also when the test fails.
type process struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{}
}

func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), name, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // it is killed, or its output tells
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of %v:\n%s", args[:2], p.output.tail(4000))
		}
	})
	return p
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// output can be read while a process writes to it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.buf.String()
	return s[max(0, len(s)-n):]
}

// eventually waits until the condition holds, asking ten times a second.
func eventually(t testing.TB, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s; last seen: %s", limit, what, seen)
		}
		<-tick.C
	}
}
