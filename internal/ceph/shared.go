package ceph

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// linger is how long a question waits for others that are asked at the same
// moment. Preflights that are asked together, and steps that run together, are;
// and a process of ceph takes a hundred times as long.
const linger = 5 * time.Millisecond

// shared lets those who ask at the same moment share what they ask: the same
// question is put once, and different ones together. They are put after all of them
// have been asked: nobody gets an answer that is older than the question by more than
// maxAge, nor one from before a change.
type shared struct {
	maxAge time.Duration

	mu sync.Mutex
	// gathering are the questions that have not been put to Ceph yet.
	gathering *gathering
	// put are those put within maxAge and since the last change, answered or not, by their text.
	put map[string]*question
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
	text := command.String()
	if q := s.put[text]; q != nil && !command.anew && q.young(s.maxAge) && q.serves() {
		return q
	}
	if s.gathering == nil {
		s.gathering = &gathering{open: make(map[string]*question)}
		go s.gather(put)
	}
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
	var awaited []*question
	for _, q := range s.gathered() {
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

// gathered ends the gathering, and returns its questions as put from now on.
func (s *shared) gathered() []*question {
	s.mu.Lock()
	defer s.mu.Unlock()
	gathering, now := s.gathering, time.Now()
	s.gathering = nil
	for _, q := range gathering.all {
		q.put = now
	}
	if s.maxAge > 0 {
		if s.put == nil {
			s.put = make(map[string]*question)
		}
		maps.Copy(s.put, gathering.open)
		time.AfterFunc(s.maxAge, s.forgetOld) // answers can be large
	}
	return gathering.all
}

func (s *shared) forgetOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.put, func(_ string, q *question) bool { return !q.young(s.maxAge) })
}

// changes keeps what was asked before from answering what is asked from now on.
func (s *shared) changes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.put)
}
