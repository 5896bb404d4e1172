package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tailLines is the number of lines of a component's log that are shown when it fails.
const tailLines = 20

// process is a running component.
type process struct {
	name    string
	pid     int
	log     string
	stopped chan struct{} // closed when it has ended
	err     error         // why it ended; readable once stopped is closed
	signal  func(os.Signal) error
	end     syscall.Signal // see child
}

// endTimeout is how long a component may take to end before it is killed.
const endTimeout = 5 * time.Second

// startProcess runs the component c as a child. The kernel signals the child to end when the calling OS thread ends, so
// call it from a goroutine that stays locked to its thread as long as the child must live.
func startProcess(ctx context.Context, dir Dir, c child) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program's own file: %w", err)
	}
	logFile, err := os.OpenFile(dir.Log(c.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of %s: %w", c.name, err)
	}
	defer func() { _ = logFile.Close() }() // the child has its own copy

	// Do not use ctx for the command, because the supervisor stops its children in order.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, append([]string{c.name}, c.args...)...)
	cmd.Dir = string(dir)
	cmd.Env = append(childEnv(dir), c.env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// Use a separate process group, so that Ctrl-C reaches only the supervisor, which then stops its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: c.signal(), Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	p := &process{
		name: c.name, pid: cmd.Process.Pid, log: dir.Log(c.name),
		stopped: make(chan struct{}), signal: cmd.Process.Signal, end: c.signal(),
	}
	go func() {
		p.err = cmd.Wait()
		close(p.stopped)
	}()
	return p, nil
}

func (c child) signal() syscall.Signal {
	if c.end == 0 {
		return syscall.SIGKILL
	}
	return c.end
}

// stop ends the component with its signal, or kills it after endTimeout, and waits for its end.
func (p *process) stop() error {
	for _, s := range []syscall.Signal{p.end, syscall.SIGKILL} {
		if err := p.signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("cannot end %s (pid %d): %w", p.name, p.pid, err)
		}
		select {
		case <-p.stopped:
			return nil
		case <-time.After(endTimeout):
		}
	}
	return fmt.Errorf("%s (pid %d) still runs %s after it was killed", p.name, p.pid, endTimeout)
}

// childEnv returns the environment of a component. It has no variable that would make the component read the user's own
// configuration.
func childEnv(dir Dir) []string {
	env := []string{"HOME=" + string(dir)}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == "HOME" || name == "KUBECONFIG" || strings.HasPrefix(name, "ETCD_") || strings.HasPrefix(name, "KWOK_") {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// failure returns an error for a component that ended or did not become ready.
func (p *process) failure(what string) error {
	return fmt.Errorf("%s %s; the last lines of %s:\n%s", p.name, what, p.log, tail(p.log, tailLines))
}

// ended returns the error for a component that the supervisor did not stop.
func (p *process) ended() error {
	if p.err == nil {
		return p.failure("ended by itself with status 0")
	}
	return p.failure("ended by itself: " + p.err.Error())
}

// tail returns the last n lines of a file, indented.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "  " + strings.Join(lines, "\n  ")
}
