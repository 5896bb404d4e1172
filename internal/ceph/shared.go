package ceph

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// gatherTime is the time that a query waits for other queries. Parallel preflights and steps query at about the same
// time. A ceph process takes about a hundred times as long as this wait.
const gatherTime = 5 * time.Millisecond

// sharedQueries lets callers share queries of the same moment: it sends equal queries once, and different queries
// together. No answer is from before a change, or more than maxAge older than its query.
type sharedQueries struct {
	maxAge time.Duration

	mu sync.Mutex
	// gathering has the queries that have not been sent yet, or is nil.
	gathering *gathering
	// sent are the queries sent within maxAge and after the last change, answered or not, by command text.
	sent map[string]*sharedQuery
}

// gathering is a group of queries that are sent together.
type gathering struct {
	// open are the queries that a caller can join, by command text. all also has the queries for which no caller waits.
	open map[string]*sharedQuery
	all  []*sharedQuery
}

// ask returns the answer to a query. put sends the gathered queries, and finishes each of them. When the last caller
// stops waiting, ask cancels the query and waits until it has ended.
func (s *sharedQueries) ask(ctx context.Context, command command, put func([]*sharedQuery)) ([]byte, error) {
	q := s.join(ctx, command, put)
	select {
	case <-q.done:
		q.panicked.Raise()
		return q.answer, q.err
	case <-ctx.Done():
	}
	if q.removeCaller() {
		<-q.done
		q.panicked.Raise()
	}
	return nil, fmt.Errorf("%s: %w", command, context.Cause(ctx))
}

// join returns a query with the same text that still runs or can be reused, or else a new query.
func (s *sharedQueries) join(ctx context.Context, command command, put func([]*sharedQuery)) *sharedQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := command.String()
	if q := s.sent[text]; q != nil && !command.uncached && q.isYoungerThan(s.maxAge) && q.canBeJoined() {
		return q
	}
	if s.gathering == nil {
		s.gathering = &gathering{open: make(map[string]*sharedQuery)}
		go s.gather(put)
	}
	if q := s.gathering.open[text]; q != nil && q.addCaller() {
		return q
	}
	q := newSharedQuery(ctx, command)
	s.gathering.open[text] = q
	s.gathering.all = append(s.gathering.all, q)
	return q
}

// gather waits for more queries, and sends those that a caller still waits for.
func (s *sharedQueries) gather(put func([]*sharedQuery)) {
	<-time.After(gatherTime)
	var awaited []*sharedQuery
	for _, q := range s.takeGathered() {
		if q.callersCtx.Err() != nil {
			// No caller waits any more, so the query is not sent.
			q.finish(nil, context.Cause(q.callersCtx), nil)
			continue
		}
		awaited = append(awaited, q)
	}
	if len(awaited) > 0 {
		put(awaited)
	}
}

// takeGathered ends the gathering, marks its queries as sent now, and returns them.
func (s *sharedQueries) takeGathered() []*sharedQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	gathering, now := s.gathering, time.Now()
	s.gathering = nil
	for _, q := range gathering.all {
		q.sentAt = now
	}
	if s.maxAge > 0 {
		if s.sent == nil {
			s.sent = make(map[string]*sharedQuery)
		}
		maps.Copy(s.sent, gathering.open)
		time.AfterFunc(s.maxAge, s.forgetOld) // answers can be large
	}
	return gathering.all
}

func (s *sharedQueries) forgetOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.sent, func(_ string, q *sharedQuery) bool { return !q.isYoungerThan(s.maxAge) })
}

// dropAnswers drops earlier answers, because a change may have made them wrong.
func (s *sharedQueries) dropAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sent)
}
