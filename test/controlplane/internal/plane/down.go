package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	termTimeout = 10 * time.Second // for the supervisor to stop its children
	killTimeout = 5 * time.Second  // for the kernel to end killed processes
)

// Down ends the control plane of dir, and returns the number of processes that it ended. It returns no error if no
// process runs.
func Down(ctx context.Context, dir Dir) (int, error) {
	r, err := dir.readPids()
	if err != nil {
		return 0, err
	}
	processes := living(r.Processes)
	if err := terminate(ctx, processes); err != nil {
		return 0, err
	}
	if err := os.Remove(dir.pids()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("cannot remove the list of pids: %w", err)
	}
	return len(processes), nil
}

// terminate asks the supervisor to stop all processes, and kills the processes that are left after that.
func terminate(ctx context.Context, processes []started) error {
	if len(processes) == 0 {
		return nil
	}
	if supervisor := processes[0]; supervisor.Name == supervisorName {
		if err := supervisor.signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := waitUntilEnded(ctx, processes, termTimeout); err == nil || ctx.Err() != nil {
			return err
		}
	}
	for _, p := range living(processes) {
		if err := p.signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	return waitUntilEnded(ctx, processes, killTimeout)
}

// waitUntilEnded waits until all processes have ended.
func waitUntilEnded(ctx context.Context, processes []started, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := living(processes)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still running: %s: %w", names(left), ctx.Err())
		case <-tick.C:
		}
	}
}

func living(processes []started) []started {
	var left []started
	for _, p := range processes {
		if p.alive() {
			left = append(left, p)
		}
	}
	return left
}

func names(processes []started) string {
	var list []string
	for _, p := range processes {
		list = append(list, fmt.Sprintf("%s (pid %d)", p.Name, p.PID))
	}
	return strings.Join(list, ", ")
}
