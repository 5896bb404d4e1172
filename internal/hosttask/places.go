package hosttask

import (
	"context"
	"errors"
	"sync"
	"time"
)

// AtOnce is how many host tasks run at a time, whoever asked for them.
const AtOnce = 10

// patience is how long a task waits for its place in one go, and glance how often it looks
// whether one that another EKCO made has ended.
const (
	patience = time.Minute
	glance   = 2 * time.Second
)

// ErrBusy is returned when as many host tasks run as may.
var ErrBusy = errors.New("as many host tasks run as may at a time")

// places are what tasks take that run. Make them with newPlaces.
type places struct {
	// asking is held by the first of those who wait. It is a channel of one, since others
	// wait no longer than they want to.
	asking chan struct{}
	mu     sync.Mutex
	taken  map[string]bool
	// left is closed when one is given up.
	left chan struct{}
}

func newPlaces() places { return places{asking: make(chan struct{}, 1), taken: map[string]bool{}} }

// take waits for a place: who came first gets the first that there is. under lists the pods
// that have one in the cluster, also those that an EKCO before this one made.
func (p *places) take(ctx context.Context, name string, under func(context.Context) ([]string, error)) error {
	late := time.NewTimer(patience)
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
		left := p.whenLeft() // before it looks, so that it misses none
		running, err := under(ctx)
		if err != nil || p.try(name, running) {
			return err
		}
		select {
		case <-left:
		case <-time.After(glance):
		case <-late.C:
			return ErrBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try takes a place if there is one beside those that run.
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

// keep takes a place for what has its pod already.
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

// has reports whether somebody attends to the task of a pod.
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
