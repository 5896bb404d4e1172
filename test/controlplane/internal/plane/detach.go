package plane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// ProgressFD is where a supervisor started by Detach finds the pipe for its
// progress lines. It says ReadyLine there last, or what went wrong.
const ProgressFD = 3

// ReadyLine ends the progress of a detached supervisor that succeeded.
const ReadyLine = "READY"

// Detach runs this program with args in a session of its own, passes its
// progress lines on, and returns when it is ready. When ctx ends first, the
// supervisor is told to stop.
func Detach(ctx context.Context, args []string, progress io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's own file: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe to the supervisor: %w", err)
	}
	defer func() { _ = reader.Close() }()
	// It outlives ctx once it is ready, and is told to stop in its own way before.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, args...)
	cmd.ExtraFiles = []*os.File{writer} // the first one becomes ProgressFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return fmt.Errorf("cannot start the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()

	if relay(reader, progress) {
		return cmd.Process.Release()
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the control plane did not start: %w", err)
	}
	return errors.New("the control plane did not start: its supervisor was stopped")
}

// relay copies lines until the writer closes, and reports whether the last one
// was ReadyLine.
func relay(from io.Reader, to io.Writer) bool {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if lines.Text() == ReadyLine {
			return true
		}
		_, _ = fmt.Fprintln(to, lines.Text())
	}
	return false
}
