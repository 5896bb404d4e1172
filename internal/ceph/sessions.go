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
	// keepIdle is how long a session waits for further queries.
	keepIdle = 3 * time.Second
	// sessionRetry is when sessions are tried again after they failed.
	sessionRetry = 10 * time.Minute
	// maxFailures in a row mean that sessions do not work.
	maxFailures = 2
)

// lifetime is how long a session may last. It gets no more queries if less than a query's timeout is left.
func (c *Client) lifetime() time.Duration { return 2 * c.options.Timeout }

// sessionTimeout is how long a session may take for its answers, including the start of the process: a
// command's timeout once sessions have worked, and half of that before. The rest of a query's time is for a
// process of its own.
func (c *Client) sessionTimeout() time.Duration {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	if c.sessions.works {
		return c.options.Timeout
	}
	return c.options.Timeout / 2
}

// promptAnswer is how soon a process of its own answers a query if Ceph and its machines have little load. If
// it takes longer, a slow session is no failure.
func (c *Client) promptAnswer() time.Duration { return c.options.Timeout / 6 }

// sessions are the sessions that wait for further queries.
type sessions struct {
	mu   sync.Mutex
	idle []*session
	// works is set once a session has answered; failures counts those in a row that did not.
	works    bool
	failures int
	// retryAt is when sessions are tried again.
	retryAt time.Time
}

// put sends queries to Ceph and ends each. Those for the monitors share one session, and those for the mgr
// another, since the mgr may never answer. A session has no form twice.
func (c *Client) put(asked []*sharedQuery) {
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
			go c.answer(group)
		}
	}
}

// answer ends the queries of a group: in one session or, if that fails, in a process for each.
func (c *Client) answer(group []*sharedQuery) {
	began := time.Now()
	var answers [][]byte
	var err error
	if caught := parallel.Catch(func() { answers, err = c.querySession(group, began) }); caught != nil {
		for _, q := range group {
			q.end(nil, nil, caught)
		}
		return
	}
	for i, q := range group {
		if err == nil {
			c.report(q.asking, q.command, began, nil)
			q.end(answers[i], nil, nil)
			continue
		}
		tried := i == 0 && !errors.Is(err, errNoSession) && !errors.Is(err, errRefused)
		go c.answerAlone(q, began, tried)
	}
}

// answerAlone answers a query in a process of its own. If a session was tried and failed, a prompt answer now shows
// that the session was at fault.
func (c *Client) answerAlone(q *sharedQuery, began time.Time, tried bool) {
	var answer []byte
	var err error
	asked := time.Now()
	caught := parallel.Catch(func() {
		if q.asking.Err() != nil {
			err = context.Cause(q.asking) // no caller waits any more
			return
		}
		answer, err = c.complete(q.asking, q.command, began.Add(c.limit()))
		c.report(q.asking, q.command, began, err)
	})
	if tried && caught == nil && q.asking.Err() == nil && !errors.Is(err, ErrUnavailable) && time.Since(asked) < c.promptAnswer() {
		c.sessions.failed()
	}
	q.end(answer, err, caught)
}

// errNoSession means that no session was tried.
var errNoSession = errors.New("one process for each query")

// querySession sends queries to one process. After any error each of them needs a process of its own.
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
	awaited, stop := whileAnyIsAwaited(group)
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
	c.keep(v)
	return answers, nil
}

// whileAnyIsAwaited returns a context that ends when no caller waits for any of the queries.
func whileAnyIsAwaited(group []*sharedQuery) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(group[0].asking))
	var awaited atomic.Int64
	awaited.Store(int64(len(group)))
	var stops []func() bool
	for _, q := range group {
		stops = append(stops, context.AfterFunc(q.asking, func() {
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

// keep keeps a session for further queries.
func (c *Client) keep(v *session) {
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

// enabled reports whether sessions are used.
func (t *sessions) enabled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !time.Now().Before(t.retryAt)
}

// failed counts a session that failed although Ceph answers.
func (t *sessions) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures++; t.failures >= maxFailures {
		t.works, t.failures, t.retryAt = false, 0, time.Now().Add(sessionRetry)
	}
}

// take removes and returns an idle session in the place with at least this much time left, or nil.
func (t *sessions) take(place string, left time.Duration) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, v := range slices.Backward(t.idle) {
		if v.place == place && v.usable() && time.Since(v.began) <= left {
			t.idle = slices.Delete(t.idle, i, i+1)
			v.idle.Stop()
			return v
		}
	}
	return nil
}

// remove reports whether the session was still idle.
func (t *sessions) remove(v *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.idle, v)
	if i < 0 {
		return false
	}
	t.idle = slices.Delete(t.idle, i, i+1)
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
