package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/artifacts"
)

// Process is a child process. Only the test's goroutine may call its methods.
type Process struct {
	// Output is the output so far, to stdout and stderr.
	Output Output

	tb    testing.TB
	cmd   *exec.Cmd
	cpu   *cpuTime
	ended chan struct{}
}

// Start starts a program.
func Start(tb testing.TB, name string, args ...string) *Process {
	tb.Helper()
	return StartWith(tb, nil, name, args...)
}

// StartWith starts a program with more environment variables, in the form NAME=VALUE.
func StartWith(tb testing.TB, env []string, name string, args ...string) *Process {
	tb.Helper()
	// Output to a file costs the test no memory and no goroutine.
	output, err := os.Create(filepath.Join(tb.TempDir(), "output"))
	if err != nil {
		tb.Fatal(err)
	}
	defer output.Close()
	// Do not use the test's context: it ends before the cleanups, and some of them need the process.
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if env != nil {
		cmd.Env = append(cmd.Environ(), env...)
	}
	p := &Process{Output: Output{output.Name()}, tb: tb, cmd: cmd, cpu: cpuTimeOf(tb), ended: make(chan struct{})}
	if err := p.start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			artifacts.Processes(tb)
		}
		p.Kill()
		if tb.Failed() {
			tb.Logf("output of %s:", p)
			artifacts.Keep(tb, fmt.Sprint(filepath.Base(name), "-", p.PID()), []byte(p.Output.String()))
		}
	})
	return p
}

// start starts the process, and waits for its end in the background. The kernel kills a child when the thread that
// started it ends, so start keeps that thread while the child lives.
func (p *Process) start() error {
	started := make(chan error)
	go func() {
		defer close(p.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState has the result
			p.cpu.addEnded(p.cmd.ProcessState)
		}
	}()
	return <-started
}

// String returns the command line.
func (p *Process) String() string { return fmt.Sprint(p.cmd.Args) }

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Kill sends SIGKILL, like a power failure, and waits for the end.
func (p *Process) Kill() {
	if p.Running() {
		p.cpu.addKilled(p.PID())
	}
	_ = p.cmd.Process.Kill() // it fails if the process has ended
	<-p.ended
}

// Stop sends SIGTERM, and returns how long the process took to end. If it takes longer than limit, the test fails and
// the process is killed.
func (p *Process) Stop(limit time.Duration) time.Duration {
	p.tb.Helper()
	began := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it fails if the process has ended
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.tb.Errorf("%s did not end within %s of SIGTERM", p, limit)
		p.Kill()
	}
	return time.Since(began)
}

// Wait waits until the process has ended, and returns the exit code, or -1 if a signal ended it. If that takes longer
// than limit, the test ends.
func (p *Process) Wait(limit time.Duration) int {
	p.tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.tb.Fatalf("%s did not end within %s", p, limit)
	}
	return p.cmd.ProcessState.ExitCode()
}
