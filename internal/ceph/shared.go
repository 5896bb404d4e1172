package ceph

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// gatherTime is how long a query waits for others. Preflights and steps that run in parallel query at the same
// moment, and a ceph process takes a hundred times as long.
const gatherTime = 5 * time.Millisecond

// shared lets callers share queries: equal ones of the same moment are sent once, and different ones together.
// They are sent after all of them were made, so no answer is older than its query by more than maxAge, or from
// before a change.
type shared struct {
	maxAge time.Duration

	mu sync.Mutex
	// gathering are the queries that have not been sent yet.
	gathering *gathering
	// put are the queries sent within maxAge and since the last change, answered or not, by their text.
	put map[string]*sharedQuery
}

// gathering is the queries of one moment.
type gathering struct {
	// open are the queries that can be joined, by their text; all also has those without a waiting caller.
	open map[string]*sharedQuery
	all  []*sharedQuery
}

// ask returns the answer to a query. put sends the gathered queries, and ends each of them. A query that no caller
// waits for is given up; its last caller waits until it has ended.
func (s *shared) ask(ctx context.Context, command command, put func([]*sharedQuery)) ([]byte, error) {
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

// join joins a query that is being gathered, or begins one.
func (s *shared) join(ctx context.Context, command command, put func([]*sharedQuery)) *sharedQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := command.String()
	if q := s.put[text]; q != nil && !command.uncached && q.young(s.maxAge) && q.serves() {
		return q
	}
	if s.gathering == nil {
		s.gathering = &gathering{open: make(map[string]*sharedQuery)}
		go s.gather(put)
	}
	if q := s.gathering.open[text]; q != nil && q.enter() {
		return q
	}
	q := newSharedQuery(ctx, command)
	s.gathering.open[text] = q
	s.gathering.all = append(s.gathering.all, q)
	return q
}

// gather waits for more queries, and sends those that a caller still waits for.
func (s *shared) gather(put func([]*sharedQuery)) {
	<-time.After(gatherTime)
	var awaited []*sharedQuery
	for _, q := range s.gathered() {
		if q.asking.Err() != nil {
			// All callers have left, and nothing was sent.
			q.end(nil, context.Cause(q.asking), nil)
			continue
		}
		awaited = append(awaited, q)
	}
	if len(awaited) > 0 {
		put(awaited)
	}
}

// gathered ends the gathering, and returns its queries as sent now.
func (s *shared) gathered() []*sharedQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	gathering, now := s.gathering, time.Now()
	s.gathering = nil
	for _, q := range gathering.all {
		q.put = now
	}
	if s.maxAge > 0 {
		if s.put == nil {
			s.put = make(map[string]*sharedQuery)
		}
		maps.Copy(s.put, gathering.open)
		time.AfterFunc(s.maxAge, s.forgetOld) // answers can be large
	}
	return gathering.all
}

func (s *shared) forgetOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.put, func(_ string, q *sharedQuery) bool { return !q.young(s.maxAge) })
}

// changes drops earlier answers, because a change may have made them wrong.
func (s *shared) changes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.put)
}
