package ceph

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// counted answers each command after its time, and keeps what was run.
type counted struct {
	takes time.Duration
	fails error

	mu  sync.Mutex
	ran []string
}

func (c *counted) Run(ctx context.Context, argv []string) ([]byte, []byte, int, error) {
	at := slices.Index(argv, "json")
	command := strings.Join(argv[at+1:], " ")
	c.mu.Lock()
	c.ran = append(c.ran, command)
	fails := c.fails
	c.mu.Unlock()
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return nil, nil, 0, ctx.Err()
	}
	if command == "osd dump" {
		return []byte(`{"fsid":"f","osds":[{"osd":9,"uuid":"u"}]}`), nil, 0, fails
	}
	return []byte(`{"health":{"status":"HEALTH_OK"},"mgrmap":{"available":true}}`), nil, 0, fails
}

// count is how often the command was run.
func (c *counted) count(command string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ran := range c.ran {
		if ran == command {
			n++
		}
	}
	return n
}

const maxAge = 500 * time.Millisecond

func health(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerDoesForWhoAsksTheSameSoonAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: 100 * time.Millisecond}
		client := New(runner, Options{MaxAge: maxAge})
		began := time.Now()
		health(t, client)
		put := time.Since(began) - runner.takes
		health(t, client)
		time.Sleep(maxAge - runner.takes - time.Millisecond)
		health(t, client)
		if n := runner.count("status"); n != 1 {
			t.Errorf("asked %d times within %s of when it was put, %s after the question", n, maxAge, put)
		}
		time.Sleep(time.Millisecond)
		health(t, client)
		if n := runner.count("status"); n != 2 {
			t.Errorf("asked %d times; its age counts from when it was put", n)
		}
		time.Sleep(maxAge)
		synctest.Wait()
		if n := len(client.reads.sent); n != 0 {
			t.Errorf("%d answers are kept at rest", n)
		}
	})
}

func TestAQuestionThatIsUnderWayIsJoinedButNotOneThatEverybodyLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: 300 * time.Millisecond}
		client := New(runner, Options{MaxAge: maxAge})
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() { _, _ = client.Health(impatient) })
		time.Sleep(50 * time.Millisecond)
		asking.Go(func() { health(t, client) })
		asking.Wait()
		if n := runner.count("status"); n != 1 {
			t.Errorf("it was asked %d times while it was under way", n)
		}

		time.Sleep(maxAge)
		left, cancelLeft := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancelLeft()
		if _, err := client.Health(left); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		health(t, client)
		if n := runner.count("status"); n != 3 {
			t.Errorf("asked %d times: a question that was given up answers nobody", n)
		}
	})
}

func TestNoAnswerFromBeforeTheEndOfAChangeDoesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: 200 * time.Millisecond}
		client := New(runner, Options{MaxAge: time.Hour})
		var asking sync.WaitGroup
		asking.Go(func() { health(t, client) }) // is under way when the change begins
		time.Sleep(100 * time.Millisecond)
		asking.Go(func() {
			if err := client.Out(t.Context(), 9); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(50 * time.Millisecond)
		health(t, client) // is put while the change runs, and answered after its end
		asking.Wait()
		if n := runner.count("status"); n != 2 {
			t.Errorf("asked %d times; what is asked during a change is not answered from before it", n)
		}
		health(t, client)
		if n := runner.count("status"); n != 3 {
			t.Errorf("asked %d times; after a change it is asked anew", n)
		}
	})
}

func TestAFailureIsNotKeptForWhoAsksNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: time.Millisecond, fails: errors.New("no pod")}
		client := New(runner, Options{MaxAge: maxAge})
		if _, err := client.Health(t.Context()); err == nil {
			t.Error("it did not fail")
		}
		runner.mu.Lock()
		runner.fails = nil
		runner.mu.Unlock()
		health(t, client)
		health(t, client)
		if n := runner.count("status"); n != 2 {
			t.Errorf("asked %d times; an answer does though a failure came shortly before", n)
		}
	})
}

// once panics when it is run first.
type once struct {
	counted
	did atomic.Bool
}

func (o *once) Run(ctx context.Context, argv []string) ([]byte, []byte, int, error) {
	if !o.did.Swap(true) {
		panic("a defect")
	}
	return o.counted.Run(ctx, argv)
}

func TestAPanicIsNotKeptForWhoAsksNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(&once{}, Options{MaxAge: maxAge})
		if caught := parallel.Catch(func() { _, _ = client.Health(t.Context()) }); caught == nil {
			t.Error("nothing was caught")
		}
		if caught := parallel.Catch(func() { health(t, client) }); caught != nil {
			t.Errorf("who asks next gets %v", caught.Value)
		}
	})
}

// lingering ends its first command only a while after it is told to.
type lingering struct {
	counted
	did atomic.Bool
}

func (l *lingering) Run(ctx context.Context, argv []string) ([]byte, []byte, int, error) {
	if !l.did.Swap(true) {
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		return nil, nil, 0, ctx.Err()
	}
	return l.counted.Run(ctx, argv)
}

func TestAQuestionThatIsBeingGivenUpIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(&lingering{}, Options{MaxAge: maxAge})
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() { _, _ = client.Health(impatient) })
		time.Sleep(150 * time.Millisecond)
		health(t, client)
		asking.Wait()
	})
}

// safe is a Runner that calls all OSDs safe to destroy that it is asked about.
type safe struct{}

func (safe) Run(_ context.Context, argv []string) ([]byte, []byte, int, error) {
	ids := argv[slices.Index(argv, "safe-to-destroy")+1:]
	return []byte(`{"safe_to_destroy":[` + strings.Join(ids, ",") + `]}`), nil, 0, nil
}

func TestAnAnswerAboutOtherOSDsDoesForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := New(safe{}, Options{MaxAge: maxAge})
		for _, ids := range [][]int{{1}, {1, 2}, {2}, {12}} {
			if said, err := client.SafeToDestroy(t.Context(), ids...); err != nil || !said.All() {
				t.Errorf("of %v it says %+v, %v", ids, said, err)
			}
		}
	})
}

// TestAnAnswerDoesAsLongAsItsAgeSays: neither shorter, since others are forgotten, nor longer,
// when a process that has no time forgets late.
func TestAnAnswerDoesAsLongAsItsAgeSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: time.Millisecond}
		client := New(runner, Options{MaxAge: maxAge})
		if _, err := client.uuids(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxAge / 2)
		health(t, client)
		time.Sleep(maxAge/2 + gatherTime)
		health(t, client)
		if n := runner.count("status"); n != 1 {
			t.Errorf("asked %d times, though only another answer is old", n)
		}

		old := newSharedQuery(t.Context(), command{args: []string{"status"}})
		old.sentAt = time.Now().Add(-maxAge)
		old.finish([]byte("{}"), nil, nil)
		client.reads.sent = map[string]*sharedQuery{old.command.String(): old}
		health(t, client)
		if n := runner.count("status"); n != 2 {
			t.Errorf("asked %d times; what is old does for nobody", n)
		}
	})
}

func TestTheIdentityOfAnOSDIsAskedAnewBeforeItIsPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &counted{takes: time.Millisecond}
		client := New(runner, Options{MaxAge: maxAge})
		if _, err := client.uuids(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := client.Purge(t.Context(), Ref{ID: 9, UUID: "u"}, false); err != nil {
			t.Fatal(err)
		}
		if want := []string{"osd dump", "osd dump", "osd purge 9"}; !slices.Equal(runner.ran, want) {
			t.Errorf("ran %q, want %q", runner.ran, want)
		}
	})
}
