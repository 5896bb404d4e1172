package hosttask

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// AtOnce is the maximum number of host tasks that run at a time.
const AtOnce = 10

// waitTimeout is the time for which [Tasks.Make] waits for a place. pollInterval is the time between two lists of the
// pods: this process does not notice when a pod of another EKCO process ends.
const (
	waitTimeout  = time.Minute
	pollInterval = 2 * time.Second
)

// ErrBusy is returned when [AtOnce] host tasks run.
var ErrBusy = fmt.Errorf("%d host tasks run already, which is the maximum", AtOnce)

// places limits the number of running tasks. Create it with newPlaces.
type places struct {
	// asking is a lock that the first waiting task holds. It is a channel, so that other waiting tasks can stop
	// waiting.
	asking chan struct{}
	mu     sync.Mutex
	byName map[string]bool
	// freed is closed when a place becomes free.
	freed chan struct{}
}

func newPlaces() places { return places{asking: make(chan struct{}, 1), byName: map[string]bool{}} }

// take waits for a place, first come, first served. under must list the unfinished pods in the cluster, which need
// places too, even if an earlier EKCO process created them.
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
		left := p.whenFreed() // before the list, so that no change is missed
		running, err := under(ctx)
		if err != nil || p.tryTake(name, running) {
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

// tryTake takes a place if fewer than AtOnce are taken.
func (p *places) tryTake(name string, running []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, other := range running {
		if other != name && !p.byName[other] {
			count++
		}
	}
	for other := range p.byName {
		if other != name {
			count++
		}
	}
	if count < AtOnce {
		p.byName[name] = true
	}
	return count < AtOnce
}

// keep takes a place for a task that already has its pod.
func (p *places) keep(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byName[name] = true
}

func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byName, name)
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// has reports whether a step of this EKCO process handles the task of a pod.
func (p *places) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

func (p *places) whenFreed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed == nil {
		p.freed = make(chan struct{})
	}
	return p.freed
}
