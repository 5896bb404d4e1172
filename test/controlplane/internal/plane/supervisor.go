package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// supervisor owns the components of one control plane. Only the goroutine that called Run may call its methods.
type supervisor struct {
	dir      Dir
	progress io.Writer
	begin    time.Time
	children []*process
	running  running
	ended    chan *process // receives each component that ends
	stopping chan struct{}
}

func newSupervisor(dir Dir, progress io.Writer) (*supervisor, error) {
	self, err := identify(supervisorName, os.Getpid())
	if err != nil {
		return nil, err
	}
	return &supervisor{
		dir: dir, progress: progress, begin: time.Now(),
		running:  running{Boot: bootID(), Processes: []started{self}},
		ended:    make(chan *process),
		stopping: make(chan struct{}),
	}, nil
}

// start starts a component and records its pid.
func (s *supervisor) start(ctx context.Context, c child) (*process, error) {
	p, err := startProcess(ctx, s.dir, c)
	if err != nil {
		return nil, err
	}
	s.children = append(s.children, p)
	go func() {
		<-p.stopped
		select {
		case s.ended <- p:
		case <-s.stopping:
		}
	}()
	id, err := identify(p.name, p.pid)
	if err != nil {
		<-p.stopped
		return nil, p.ended()
	}
	s.running.Processes = append(s.running.Processes, id)
	return p, s.dir.writePids(s.running)
}

// stop ends every component and waits until all have ended. It saves nothing, because a control plane is never started
// again with old data.
func (s *supervisor) stop() error {
	var errs []error
	for _, p := range s.children {
		errs = append(errs, p.stop())
	}
	close(s.stopping)
	if err := os.Remove(s.dir.pids()); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("cannot remove the list of pids: %w", err))
	}
	return errors.Join(errs...)
}

// await repeats ready until it succeeds. It returns an error with the end of blame's log if any component ends, if ctx
// ends, or after componentTimeout.
func (s *supervisor) await(ctx context.Context, blame *process, ready func(context.Context) error) error {
	const pause = 50 * time.Millisecond
	deadline := time.NewTimer(componentTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case p := <-s.ended:
			return p.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return blame.failure(fmt.Sprintf("is not ready after %s: %v", componentTimeout, err))
		case <-tick.C:
		}
	}
}

// run waits until a component ends without being stopped, or until ctx ends, which is the normal end.
func (s *supervisor) run(ctx context.Context) error {
	select {
	case p := <-s.ended:
		return p.ended()
	case <-ctx.Done():
		return nil
	}
}

// stage prints a finished stage with the time since the start.
func (s *supervisor) stage(what string) {
	_, _ = fmt.Fprintf(s.progress, "%6.1fs  %s\n", time.Since(s.begin).Seconds(), what)
}
