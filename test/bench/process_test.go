package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a child that is ended by its own pid, also when the benchmark
// fails. Its output goes to a file, so that keeping it costs no memory here.
type process struct {
	cmd    *exec.Cmd
	output string
	done   chan struct{}
}

func start(b *testing.B, name string, args ...string) *process {
	b.Helper()
	output, err := os.Create(filepath.Join(b.TempDir(), "output"))
	if err != nil {
		b.Fatal(err)
	}
	defer output.Close()
	p := &process{cmd: exec.Command(name, args...), output: output.Name(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		b.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	b.Cleanup(func() {
		p.stop(b)
		if b.Failed() {
			b.Logf("output of %s %v:\n%s", name, args, p.tail(8000))
		}
	})
	return p
}

// stop sends SIGTERM, after 20 s SIGKILL, and waits for the end.
func (p *process) stop(b *testing.B) {
	b.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		b.Errorf("%s did not end within 20 s of SIGTERM", p.cmd.Path)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) tail(n int) string {
	content, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-n):])
}

// run runs a command to its end and returns its standard output.
func run(b *testing.B, name string, args ...string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, complaints.String())
	}
	return string(output)
}

// eventually waits until the condition holds, asking fifty times a second.
func eventually(b *testing.B, limit time.Duration, what string, condition func() bool) {
	b.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			b.Fatalf("not within %s: %s", limit, what)
		}
		letPass(b, 20*time.Millisecond)
	}
}

// letPass lets time pass: what is measured is what happens meanwhile.
func letPass(b *testing.B, span time.Duration) {
	b.Helper()
	select {
	case <-time.After(span):
	case <-b.Context().Done():
		b.Fatal("interrupted")
	}
}
