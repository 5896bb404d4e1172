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

// ProgressFD is the file descriptor of the pipe to which a supervisor started by Detach writes its progress. The last
// line is ReadyLine or an error.
const ProgressFD = 3

// ReadyLine is the last progress line of a detached supervisor that succeeded.
const ReadyLine = "READY"

// Detach runs this program with args in a separate session, forwards its progress lines, and returns when it is ready.
// If ctx ends first, it tells the supervisor to stop.
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
	// The supervisor must outlive ctx once it is ready, and is stopped in another way before that.
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

// relay copies lines until the writer closes the pipe, and reports whether the last line was ReadyLine.
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
