package ceph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// linger is how long a question waits for others to ask the same. Preflights
// that are asked together, and steps that run together, do; and a process of
// ceph takes a hundred times as long.
const linger = 5 * time.Millisecond

// shared lets those who ask the same question at the same time share one
// command. It starts after all of them have asked: nobody gets an answer that
// is older than the question.
type shared struct {
	mu sync.Mutex
	// gathering are the questions that have not been put to Ceph yet.
	gathering map[string]*question
}

// question is one that several may wait for.
type question struct {
	mu      sync.Mutex
	waiting int
	giveUp  context.CancelFunc
	over    chan struct{}
	answer  []byte
	err     error
	// panicked is raised again where the answer is awaited: as an error it would
	// pass for a Ceph that does not answer, which a person may decide to ignore.
	panicked *parallel.PanicError
}

// ask returns what run returns, for a command that only reads. When nobody waits
// any more, run's context ends; the last to wait sees it to its end.
func (s *shared) ask(ctx context.Context, command command, run func(context.Context) ([]byte, error)) ([]byte, error) {
	q := s.join(ctx, command.String(), run)
	select {
	case <-q.over:
		q.panicked.Raise()
		return q.answer, q.err
	case <-ctx.Done():
	}
	if q.leave() {
		<-q.over
		q.panicked.Raise()
	}
	return nil, fmt.Errorf("%s: %w", command, context.Cause(ctx))
}

// join joins a question that is being gathered, or begins one.
func (s *shared) join(ctx context.Context, text string, run func(context.Context) ([]byte, error)) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.gathering[text]; q != nil && q.enter() {
		return q
	}
	asking, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	q := &question{waiting: 1, giveUp: giveUp, over: make(chan struct{})}
	if s.gathering == nil {
		s.gathering = make(map[string]*question)
	}
	s.gathering[text] = q
	go func() {
		defer close(q.over)
		defer giveUp()
		select {
		case <-time.After(linger):
		case <-asking.Done():
		}
		s.closeDoor(text, q)
		if asking.Err() != nil {
			// All have left, and nothing was begun.
			q.err = context.Cause(asking)
			return
		}
		q.panicked = parallel.Catch(func() { q.answer, q.err = run(asking) })
	}()
	return q
}

// closeDoor keeps later askers out of a question.
func (s *shared) closeDoor(text string, q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathering[text] == q {
		delete(s.gathering, text)
	}
}

// enter reports whether one more may wait: not where all have left.
func (q *question) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		return false
	}
	q.waiting++
	return true
}

// leave reports whether the last one left.
func (q *question) leave() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		q.giveUp()
	}
	return q.waiting == 0
}
