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

// A child that takes longer than this is considered hung.
const (
	childGrace         = 15 * time.Second
	childBytesPerSec   = 4 << 20
	childStderrToQuote = 2 << 10
)

// noLimit is for a child of a command that a user can interrupt.
const noLimit = time.Duration(math.MaxInt64)

// childLimit returns how long reading the file may take.
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

// runFor runs a child that reads a file. Its error wraps [journal.ErrDamaged] if the file crashed the child, but not
// if the child could not be started, was killed, timed out or gave up.
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
	case diedOfTheFile(err, stderr.text):
		return damaged("the file crashed the process that reads it: %w%s", err, stderr)
	}
	return fmt.Errorf("the process that reads the file ended early: %w%s", err, stderr)
}

// runAlone runs a program in another process group, so that it gets no signals from EKCO's terminal. It dies with
// EKCO.
func runAlone(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Stdout, command.Stderr, command.WaitDelay = stdout, stderr, time.Second
	command.Env = childEnvironment(os.Environ())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the child ends
	defer runtime.UnlockOSThread()
	return command.Run()
}

// childEnvironment adds settings to EKCO's own: a panic must not end in SIGABRT, and the child's memory must fit with
// EKCO's into kURL's limit of 128 MiB. With them, salvaging 500 MiB takes 80 MiB.
func childEnvironment(own []string) []string {
	return append([]string{"GOMEMLIMIT=48MiB"}, append(own, "GOTRACEBACK=single")...)
}

// diedOfTheFile reports whether the file crashed the child: by a fault, as bbolt can cause on a damaged file, or by a
// panic. Other ends have other causes: a signal from a terminal, the kubelet, or the kernel's OOM killer.
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

// panicked finds the first words of a Go program about a panic or a fault. Other fatal errors, such as out of memory,
// do not count.
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

// quote keeps the begin of a child's standard error.
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
