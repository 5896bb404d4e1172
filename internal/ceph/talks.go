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
	// keepIdle is how long a conversation waits for further questions.
	keepIdle = 3 * time.Second
	// silentFor is how long none is tried after that did not work.
	silentFor = 10 * time.Minute
	// enoughFailures in a row mean that it does not work.
	enoughFailures = 2
)

// lifetime is how long a conversation may last. It is asked no more when less than
// the time for a question is left.
func (c *Client) lifetime() time.Duration { return 2 * c.options.Timeout }

// patience is how long a conversation may take for its answers, the start of the
// process included: as long as a command may, once it has been seen to work, and else
// half of that. What is left of the time that a question has is for a process of its
// own.
func (c *Client) patience() time.Duration {
	c.talks.mu.Lock()
	defer c.talks.mu.Unlock()
	if c.talks.works {
		return c.options.Timeout
	}
	return c.options.Timeout / 2
}

// prompt is how soon a process of its own answers a question where Ceph and its
// machines have little to do. Where they take longer, so may a conversation.
func (c *Client) prompt() time.Duration { return c.options.Timeout / 6 }

// talks are the conversations that wait for further questions.
type talks struct {
	mu   sync.Mutex
	idle []*conversation
	// works is set once a conversation has been had, and failures counts those in a
	// row that were not.
	works    bool
	failures int
	// not until then is a conversation tried again.
	not time.Time
}

// put puts questions to Ceph and ends each. Those that the monitors answer are one
// conversation, and those for the mgr are another, since they may never be answered. In
// neither is a form twice.
func (c *Client) put(asked []*question) {
	var groups [][]*question
	var monitors, mgr []*question
	together := make(map[string]bool)
	for _, q := range asked {
		form, ok := q.command.form()
		switch {
		case !ok || together[form]:
			groups = append(groups, []*question{q})
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

// answer ends the questions of a group, in one conversation or, if that does not go
// as it must, by a process for each.
func (c *Client) answer(group []*question) {
	began := time.Now()
	var answers [][]byte
	var err error
	if caught := parallel.Catch(func() { answers, err = c.converse(group, began) }); caught != nil {
		for _, q := range group {
			q.end(nil, nil, caught)
		}
		return
	}
	for i, q := range group {
		if err == nil {
			c.tell(q.asking, q.command, began, nil)
			q.end(answers[i], nil, nil)
			continue
		}
		tried := i == 0 && !errors.Is(err, errAlone) && !errors.Is(err, errRefused)
		go c.alone(q, began, tried)
	}
}

// alone ends a question by a process of its own. Where a conversation was tried and
// brought nothing, a prompt answer now says that it was the conversation's fault.
func (c *Client) alone(q *question, began time.Time, tried bool) {
	var answer []byte
	var err error
	asked := time.Now()
	caught := parallel.Catch(func() {
		if q.asking.Err() != nil {
			err = context.Cause(q.asking) // all have left
			return
		}
		answer, err = c.complete(q.asking, q.command, began.Add(c.limit()))
		c.tell(q.asking, q.command, began, err)
	})
	if tried && caught == nil && q.asking.Err() == nil && !errors.Is(err, ErrUnavailable) && time.Since(asked) < c.prompt() {
		c.talks.failed()
	}
	q.end(answer, err, caught)
}

// errAlone says that no conversation was tried.
var errAlone = errors.New("questions are put one by one")

// converse puts questions to one process. After any error they are to be put one by
// one.
func (c *Client) converse(group []*question, began time.Time) ([][]byte, error) {
	runner, ok := c.runner.(Conversing)
	if !ok || !c.talks.tried() {
		return nil, errAlone
	}
	asked := make([]command, len(group))
	for i, q := range group {
		asked[i] = q.command
		if _, ok := q.command.form(); !ok {
			return nil, errAlone
		}
	}
	awaited, stop := whileAnyIsAwaited(group)
	defer stop()
	ctx, cancel := context.WithDeadline(awaited, began.Add(c.patience()))
	defer cancel()
	place, err := runner.Where(ctx)
	if err != nil {
		return nil, err
	}
	v := c.talks.take(place, c.options.Timeout)
	if v == nil {
		v = c.open(ctx, runner, place)
	}
	answers, err := v.ask(ctx, asked)
	if err != nil {
		v.end(0)
		<-v.ended
		v.panicked.Raise()
		return nil, err
	}
	c.keep(v)
	return answers, nil
}

// whileAnyIsAwaited returns a context that ends when nobody waits for any of the
// questions.
func whileAnyIsAwaited(group []*question) (context.Context, context.CancelFunc) {
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

// keep keeps a conversation for what is asked next.
func (c *Client) keep(v *conversation) {
	c.talks.mu.Lock()
	defer c.talks.mu.Unlock()
	c.talks.works, c.talks.failures = true, 0
	c.talks.idle = append(c.talks.idle, v)
	v.idle = time.AfterFunc(keepIdle, func() {
		if c.talks.remove(v) {
			v.end(c.options.Grace)
		}
	})
}

// tried reports whether conversations are tried.
func (t *talks) tried() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !time.Now().Before(t.not)
}

// failed notes that a conversation could not be had where Ceph answers.
func (t *talks) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures++; t.failures >= enoughFailures {
		t.works, t.failures, t.not = false, 0, time.Now().Add(silentFor)
	}
}

// take returns a conversation that waits for questions in the place, with so much
// time left, or nil. Nobody else has it then.
func (t *talks) take(place string, left time.Duration) *conversation {
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

// remove reports whether the conversation still waited for questions.
func (t *talks) remove(v *conversation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.idle, v)
	if i < 0 {
		return false
	}
	t.idle = slices.Delete(t.idle, i, i+1)
	return true
}

// Close ends the processes that wait for further questions, and waits for them. The
// client can be used again.
func (c *Client) Close() {
	c.talks.mu.Lock()
	idle := c.talks.idle
	c.talks.idle = nil
	c.talks.mu.Unlock()
	for _, v := range idle {
		v.end(c.options.Grace)
		<-v.ended
	}
}
