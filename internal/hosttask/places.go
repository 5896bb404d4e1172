package hosttask

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// AtOnce is the maximum number of host tasks that run at a time.
const AtOnce = 10

// waitTimeout is how long [Tasks.Make] waits for a place. pollInterval is between two lists of the pods, since one
// of another EKCO may have ended.
const (
	waitTimeout  = time.Minute
	pollInterval = 2 * time.Second
)

// ErrBusy is returned when [AtOnce] host tasks run.
var ErrBusy = fmt.Errorf("%d host tasks run already, which is the maximum", AtOnce)

// places limits how many tasks run. Create it with newPlaces.
type places struct {
	// asking is a lock that the first waiting task holds. It is a channel, so that the others
	// can stop waiting.
	asking chan struct{}
	mu     sync.Mutex
	taken  map[string]bool
	// left is closed when a place becomes free.
	left chan struct{}
}

func newPlaces() places { return places{asking: make(chan struct{}, 1), taken: map[string]bool{}} }

// take waits for a place, first come, first served. under lists the pods in the cluster that
// need a place, including those of an earlier EKCO.
func (p *places) take(ctx context.Context, name string, under func(context.Context) ([]string, error)) error {
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-late.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		left := p.whenLeft() // before the list, so that it misses no change
		running, err := under(ctx)
		if err != nil || p.try(name, running) {
			return err
		}
		select {
		case <-left:
		case <-time.After(pollInterval):
		case <-late.C:
			return ErrBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try takes a place if fewer than AtOnce are taken.
func (p *places) try(name string, running []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, other := range running {
		if other != name && !p.taken[other] {
			count++
		}
	}
	for other := range p.taken {
		if other != name {
			count++
		}
	}
	if count < AtOnce {
		p.taken[name] = true
	}
	return count < AtOnce
}

// keep takes a place for a task that already has its pod.
func (p *places) keep(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[name] = true
}

func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, name)
	if p.left != nil {
		close(p.left)
		p.left = nil
	}
}

// has reports whether a step of this EKCO attends to the task of a pod.
func (p *places) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[name]
}

func (p *places) whenLeft() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = make(chan struct{})
	}
	return p.left
}
