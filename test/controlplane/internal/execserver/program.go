package execserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"
)

// streams are a program's streams; nil means that the client does not want the stream.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.WriteCloser
}

// execution runs the program once, on behalf of a container.
type execution struct {
	program   string
	container container
	copying   sync.WaitGroup
}

// wait waits until all copying has ended. Close the streams first, because a read from a client that sends nothing
// would not end otherwise.
func (e *execution) wait() { e.copying.Wait() }

// run returns when the program has ended and its output is written. Its error is a utilexec.CodeExitError for a code
// other than 0; the code is 128+N if signal N killed the program. When ctx ends, run kills the program and returns
// ctx's cause. It also kills the processes that the program leaves in its process group.
func (e *execution) run(ctx context.Context, command []string, s streams) error {
	// The kernel kills the program with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The whole process group is killed below.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), e.program, command...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"POD_NAMESPACE=" + e.container.namespace, "POD_NAME=" + e.container.pod, "CONTAINER=" + e.container.name,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var p pipes
	defer p.close()
	if err := p.connect(cmd, s); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot run the exec handler: %w", err)
	}
	copied := e.pump(&p, s)

	exited := make(chan struct{})
	go func() {
		awaitExit(cmd.Process.Pid)
		close(exited)
	}()
	select {
	case <-exited:
	case <-ctx.Done():
	}
	// The program is not reaped yet, so the number cannot belong to another group.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: all have ended
	<-exited
	_ = cmd.Wait() // the state has the result

	select {
	case <-copied:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return exitError(cmd.ProcessState.Sys().(syscall.WaitStatus))
}

// pump copies between a program's pipes and its streams. copied is closed when all output is copied.
func (e *execution) pump(p *pipes, s streams) (copied <-chan struct{}) {
	p.closeChildEnds()
	if p.stdin != nil {
		e.copying.Go(func() {
			_, _ = io.Copy(p.stdin, s.stdin) // it ends when either side closes
			_ = p.stdin.Close()
			_, _ = io.Copy(io.Discard, s.stdin) // unread input would block the other streams
		})
	}
	var outputs sync.WaitGroup
	output := func(from *os.File, to io.WriteCloser) {
		if from == nil {
			return
		}
		outputs.Add(1)
		e.copying.Go(func() {
			defer outputs.Done()
			_, _ = io.Copy(to, from) // it fails only if the client has disconnected
			_ = to.Close()
			_ = from.Close()
		})
	}
	output(p.stdout, s.stdout)
	output(p.stderr, s.stderr)
	done := make(chan struct{})
	e.copying.Go(func() {
		outputs.Wait()
		close(done)
	})
	return done
}

// awaitExit waits until a child has ended, without reaping it.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

func exitError(status syscall.WaitStatus) error {
	switch {
	case status.Signaled():
		return utilexec.CodeExitError{Code: 128 + int(status.Signal()), Err: fmt.Errorf("killed by signal %d", int(status.Signal()))}
	case status.ExitStatus() != 0:
		return utilexec.CodeExitError{Code: status.ExitStatus(), Err: fmt.Errorf("exit code %d", status.ExitStatus())}
	default:
		return nil
	}
}
