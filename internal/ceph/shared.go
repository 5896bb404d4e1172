package ceph

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// linger is how long a question waits for others that are asked at the same
// moment. Preflights that are asked together, and steps that run together, are;
// and a process of ceph takes a hundred times as long.
const linger = 5 * time.Millisecond

// shared lets those who ask at the same moment share what they ask: the same
// question is put once, and different ones together. They are put after all of them
// have been asked: nobody gets an answer that is older than the question.
type shared struct {
	mu sync.Mutex
	// gathering are the questions that have not been put to Ceph yet.
	gathering *gathering
}

// gathering is what is asked at one moment.
type gathering struct {
	// open are those that may be joined, by their text; all has those too that
	// everybody left.
	open map[string]*question
	all  []*question
}

// ask returns the answer to a command that only reads. put gets what was gathered,
// and ends each question. When nobody waits for one any more, it is given up; the
// last to wait sees it to its end.
func (s *shared) ask(ctx context.Context, command command, put func([]*question)) ([]byte, error) {
	q := s.join(ctx, command, put)
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
func (s *shared) join(ctx context.Context, command command, put func([]*question)) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathering == nil {
		s.gathering = &gathering{open: make(map[string]*question)}
		go s.gather(put)
	}
	text := command.String()
	if q := s.gathering.open[text]; q != nil && q.enter() {
		return q
	}
	q := newQuestion(ctx, command)
	s.gathering.open[text] = q
	s.gathering.all = append(s.gathering.all, q)
	return q
}

// gather waits for others, and puts what somebody still waits for.
func (s *shared) gather(put func([]*question)) {
	<-time.After(linger)
	s.mu.Lock()
	gathered := s.gathering.all
	s.gathering = nil
	s.mu.Unlock()
	var awaited []*question
	for _, q := range gathered {
		if q.asking.Err() != nil {
			// All have left, and nothing was begun.
			q.end(nil, context.Cause(q.asking), nil)
			continue
		}
		awaited = append(awaited, q)
	}
	if len(awaited) > 0 {
		put(awaited)
	}
}
