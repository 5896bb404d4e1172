package ceph

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

const (
	// keepIdle is the time that an idle session waits for further queries.
	keepIdle = 3 * time.Second
	// sessionRetry is the time without sessions after maxFailures.
	sessionRetry = 10 * time.Minute
	// maxFailures is the number of failures in a row after which the client stops using sessions.
	maxFailures = 2
)

// lifetime is the timeout of a session. A session gets no more queries if less than a query's timeout is left.
func (c *Client) lifetime() time.Duration { return 2 * c.options.Timeout }

// sessionTimeout limits the time for the answers of a session, including the start of the process. It is a command's
// timeout once a session has worked, and half of that before, so that a separate process has time to answer.
func (c *Client) sessionTimeout() time.Duration {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	if c.sessions.works {
		return c.options.Timeout
	}
	return c.options.Timeout / 2
}

// promptAnswer is the time in which a separate process answers a query if Ceph and its machines have little load. If it
// takes longer, the client does not count the session's slowness as a failure.
func (c *Client) promptAnswer() time.Duration { return c.options.Timeout / 6 }

// sessions are the sessions that wait for further queries.
type sessions struct {
	mu   sync.Mutex
	idle []*session
	// works is set once a session has answered. failures counts the failed sessions in a row.
	works    bool
	failures int
	// retryAt is the time at which the client tries sessions again.
	retryAt time.Time
}

// sendQueries sends queries to Ceph and finishes each. Queries for the monitors share one session, and queries for the
// mgr another, since the mgr may never answer. A session gets each form of a command at most once.
func (c *Client) sendQueries(asked []*sharedQuery) {
	var groups [][]*sharedQuery
	var monitors, mgr []*sharedQuery
	together := make(map[string]bool)
	for _, q := range asked {
		form, ok := q.command.form()
		switch {
		case !ok || together[form]:
			groups = append(groups, []*sharedQuery{q})
			continue
		case q.command.mgr:
			mgr = append(mgr, q)
		default:
			monitors = append(monitors, q)
		}
		together[form] = true
	}
	for _, group := range append(groups, monitors, mgr) {
		if len(group) > 0 {
			go c.answerGroup(group)
		}
	}
}

// answerGroup finishes the queries of a group: in one session or, if that fails, in one process for each query.
func (c *Client) answerGroup(group []*sharedQuery) {
	began := time.Now()
	var answers [][]byte
	var err error
	if caught := parallel.Catch(func() { answers, err = c.querySession(group, began) }); caught != nil {
		for _, q := range group {
			q.finish(nil, nil, caught)
		}
		return
	}
	for i, q := range group {
		if err == nil {
			c.report(q.callersCtx, q.command, began, nil)
			q.finish(answers[i], nil, nil)
			continue
		}
		tried := i == 0 && !errors.Is(err, errNoSession) && !errors.Is(err, errRefused)
		go c.answerAlone(q, began, tried)
	}
}

// answerAlone answers a query in a separate process. tried is set if a session has failed for this query. If the
// separate process then answers promptly, the session was the cause of the failure.
func (c *Client) answerAlone(q *sharedQuery, began time.Time, tried bool) {
	var answer []byte
	var err error
	asked := time.Now()
	caught := parallel.Catch(func() {
		if q.callersCtx.Err() != nil {
			err = context.Cause(q.callersCtx) // no caller waits any more
			return
		}
		answer, err = c.runAlone(q.callersCtx, q.command, began.Add(c.limit()))
		c.report(q.callersCtx, q.command, began, err)
	})
	if tried && caught == nil && q.callersCtx.Err() == nil && !errors.Is(err, ErrUnavailable) && time.Since(asked) < c.promptAnswer() {
		c.sessions.countFailure()
	}
	q.finish(answer, err, caught)
}

// errNoSession means that the client tried no session.
var errNoSession = errors.New("each query needs its own process")

// querySession sends queries to one session. After any error the caller must repeat each query in a separate process.
func (c *Client) querySession(group []*sharedQuery, began time.Time) ([][]byte, error) {
	runner, ok := c.runner.(InteractiveRunner)
	if !ok || !c.sessions.enabled() {
		return nil, errNoSession
	}
	asked := make([]command, len(group))
	for i, q := range group {
		asked[i] = q.command
		if _, ok := q.command.form(); !ok {
			return nil, errNoSession
		}
	}
	awaited, stop := contextWhileAwaited(group)
	defer stop()
	ctx, cancel := context.WithDeadline(awaited, began.Add(c.sessionTimeout()))
	defer cancel()
	place, err := runner.Place(ctx)
	if err != nil {
		return nil, err
	}
	v := c.sessions.take(place, c.options.Timeout)
	if v == nil {
		v = c.open(ctx, runner, place)
	}
	answers, err := v.query(ctx, asked)
	if err != nil {
		v.end(0)
		<-v.ended
		v.panicked.Raise()
		return nil, err
	}
	c.keepSession(v)
	return answers, nil
}

// contextWhileAwaited returns a context that ends when no caller waits for any of the queries.
func contextWhileAwaited(group []*sharedQuery) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(group[0].callersCtx))
	var awaited atomic.Int64
	awaited.Store(int64(len(group)))
	var stops []func() bool
	for _, q := range group {
		stops = append(stops, context.AfterFunc(q.callersCtx, func() {
			if awaited.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// keepSession keeps an idle session for keepIdle.
func (c *Client) keepSession(v *session) {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	c.sessions.works, c.sessions.failures = true, 0
	c.sessions.idle = append(c.sessions.idle, v)
	v.idle = time.AfterFunc(keepIdle, func() {
		if c.sessions.remove(v) {
			v.end(c.options.Grace)
		}
	})
}

// enabled reports whether the client may use sessions now.
func (s *sessions) enabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.retryAt)
}

// countFailure counts a session that failed although Ceph answers queries.
func (s *sessions) countFailure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures++; s.failures >= maxFailures {
		s.works, s.failures, s.retryAt = false, 0, time.Now().Add(sessionRetry)
	}
}

// take removes and returns an idle session in the place with at least this much time left, or nil.
func (s *sessions) take(place string, left time.Duration) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range slices.Backward(s.idle) {
		if v.place == place && v.usable() && time.Since(v.began) <= left {
			s.idle = slices.Delete(s.idle, i, i+1)
			v.idle.Stop()
			return v
		}
	}
	return nil
}

// remove removes an idle session, and reports whether the session was still idle.
func (s *sessions) remove(v *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.idle, v)
	if i < 0 {
		return false
	}
	s.idle = slices.Delete(s.idle, i, i+1)
	return true
}

// Close ends the idle sessions, and waits for them. The client can be used again.
func (c *Client) Close() {
	c.sessions.mu.Lock()
	idle := c.sessions.idle
	c.sessions.idle = nil
	c.sessions.mu.Unlock()
	for _, v := range idle {
		v.end(c.options.Grace)
		<-v.ended
	}
}
