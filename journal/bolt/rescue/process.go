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

// A child that takes longer than this is taken to hang.
const (
	childGrace         = 15 * time.Second
	childBytesPerSec   = 4 << 20
	childStderrToQuote = 2 << 10
)

// noLimit is for a child that somebody waits for who can end it.
const noLimit = time.Duration(math.MaxInt64)

// childLimit returns how long the reading of the file may take.
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

// runFor runs a child that reads a file. Its error wraps [journal.ErrDamaged] when
// the child died of the file, and not when it could not be started, was killed,
// took too long or gave up.
func runFor(ctx context.Context, limit time.Duration, argv []string, stdout io.Writer) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	stderr := &quote{limit: childStderrToQuote}
	err := runAlone(limited, argv, stdout, stderr)
	switch late := context.Cause(limited); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the process that reads the file was ended: %w", ctx.Err())
	case late != nil:
		return fmt.Errorf("the process that reads the file was ended: %w%s", late, stderr)
	case diedOfTheFile(err, stderr.text):
		return damaged("the process that reads the file died of it: %w%s", err, stderr)
	}
	return fmt.Errorf("the process that reads the file ended early: %w%s", err, stderr)
}

// runAlone runs a program in a process group of its own, so that what a terminal
// sends to EKCO's does not reach it, and which ends with EKCO.
func runAlone(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Stdout, command.Stderr, command.WaitDelay = stdout, stderr, time.Second
	command.Env = childEnvironment(os.Environ())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends that started it
	defer runtime.UnlockOSThread()
	return command.Run()
}

// childEnvironment adds to EKCO's own what keeps a panic from ending in SIGABRT, and
// the child's memory so small that both fit into kURL's limit of 128 MiB: salvaging
// 500 MiB takes 80 MiB then.
func childEnvironment(own []string) []string {
	return append([]string{"GOMEMLIMIT=48MiB"}, append(own, "GOTRACEBACK=single")...)
}

// diedOfTheFile reports whether a child's end says something about what it read:
// a fault, as reading a damaged file by bbolt can cause, or a panic. Whatever else
// ends a child comes from elsewhere: a signal from a terminal, a kubelet or the
// kernel's want of memory.
func diedOfTheFile(err error, stderr []byte) bool {
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

// panicked looks for the first words of a Go program about a panic or a fault.
// Other fatal errors, such as want of memory, are none.
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

// quote keeps the first bytes of what a child says about its death.
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
