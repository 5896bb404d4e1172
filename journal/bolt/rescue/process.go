package rescue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// EKCO stops a child that takes longer than childGrace, plus a second for each childBytesPerSec of the file.
const (
	childGrace       = 15 * time.Second
	childBytesPerSec = 4 << 20
)

// childStderrToQuote is how many bytes of a child's standard error an error message quotes.
const childStderrToQuote = 2 << 10

// noLimit is the time limit for a child of a command, which a user can interrupt.
const noLimit = time.Duration(math.MaxInt64)

// childLimit returns the time limit for a child that reads the file at path.
func childLimit(path string) (time.Duration, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return limitFor(info.Size()), nil
}

func limitFor(size int64) time.Duration {
	return childGrace + time.Duration(size/childBytesPerSec)*time.Second
}

// runFor runs a child that reads a file, for at most limit. The error wraps [journal.ErrDamaged] if the file crashed
// the child, but not if the child could not be started, was killed, timed out, or returned an error.
func runFor(ctx context.Context, limit time.Duration, argv []string, stdout io.Writer) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	stderr := &quote{limit: childStderrToQuote}
	err := runAlone(limited, argv, stdout, stderr)
	switch late := context.Cause(limited); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the process that reads the file was stopped: %w", ctx.Err())
	case late != nil:
		return fmt.Errorf("the process that reads the file was stopped: %w%s", late, stderr)
	case crashedByFile(err, stderr.text):
		return damaged("the file crashed the process that reads it: %w%s", err, stderr)
	}
	return fmt.Errorf("the process that reads the file ended early: %w%s", err, stderr)
}

// runAlone runs a program in its own process group, so that it gets no signals from EKCO's terminal. The kernel kills
// the program when EKCO ends.
func runAlone(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Stdout, command.Stderr, command.WaitDelay = stdout, stderr, time.Second
	command.Env = childEnvironment(os.Environ())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the child ends
	defer runtime.UnlockOSThread()
	return command.Run()
}

// childEnvironment returns EKCO's environment variables and two more. GOTRACEBACK keeps a panic from ending in SIGABRT.
// GOMEMLIMIT limits the child's memory, because EKCO and the child together must fit into kURL's limit of 128 MiB; with
// it, salvaging a journal of 500 MiB takes 80 MiB.
func childEnvironment(own []string) []string {
	return append([]string{"GOMEMLIMIT=48MiB"}, append(own, "GOTRACEBACK=single")...)
}

// crashedByFile reports whether the file crashed the child. It did if the child ended by a memory fault, which bbolt
// can cause on a damaged file, or by a panic. Other signals come from a terminal, the kubelet or the kernel's OOM
// killer.
func crashedByFile(err error, stderr []byte) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	const exitOfPanic = 2
	if exit.ExitCode() == exitOfPanic {
		return panicked(stderr)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGSEGV || status.Signal() == syscall.SIGBUS)
}

// panicked reports whether the standard error of a Go program shows a panic or a memory fault. Other fatal errors, such
// as lack of memory, do not count.
func panicked(stderr []byte) bool {
	for line := range bytes.Lines(stderr) {
		for _, start := range []string{
			"panic: ", "unexpected fault address ", "fatal error: stack overflow", "[signal SIGSEGV", "[signal SIGBUS",
		} {
			if bytes.HasPrefix(line, []byte(start)) {
				return true
			}
		}
	}
	return false
}

// quote is a writer that keeps only the first bytes of a child's standard error.
type quote struct {
	limit int
	text  []byte
}

func (q *quote) Write(p []byte) (int, error) {
	q.text = append(q.text, p[:min(len(p), q.limit-len(q.text))]...)
	return len(p), nil
}

func (q *quote) String() string {
	if len(q.text) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q", q.text)
}
