package ceph

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slow takes a second for each command and says that all is well.
type slow struct {
	mu      sync.Mutex
	started []time.Time
}

func (s *slow) Run(ctx context.Context, _ []string) ([]byte, []byte, int, error) {
	s.mu.Lock()
	s.started = append(s.started, time.Now())
	s.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return []byte(`{"health":{"status":"HEALTH_OK"},"mgrmap":{"available":true}}`), nil, 0, nil
	case <-ctx.Done():
		return nil, nil, 0, ctx.Err()
	}
}

func TestThoseWhoAskTheSameAtTheSameTimeShareOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, told := &slow{}, 0
		client := New(runner, Options{OnCommand: func(kind string, took time.Duration, err error) {
			if told++; kind != "status" || took != time.Second || err != nil {
				t.Errorf("told of %q, %s, %v", kind, took, err)
			}
		}})
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				if _, err := client.Health(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if len(runner.started) != 1 || told != 1 {
			t.Errorf("%d commands ran, %d were told of; want one", len(runner.started), told)
		}
	})
}

func TestAnAnswerIsNeverOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &slow{}
		client := New(runner, Options{})
		var asking sync.WaitGroup
		for i := range 20 {
			asking.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Millisecond)
				began := time.Now()
				if _, err := client.Health(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < time.Second {
					t.Errorf("the question of %s was answered after %s, by a command that ran before", began, took)
				}
			})
		}
		asking.Wait()
		if len(runner.started) < 2 || len(runner.started) >= 20 {
			t.Errorf("%d commands ran", len(runner.started))
		}
	})
}

func TestWhoStopsWaitingSpoilsNothingForTheOthersAndTheLastEndsTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &slow{}
		client := New(runner, Options{})
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := client.Health(impatient); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnavailable) {
				t.Errorf("the impatient one got %v", err)
			}
		})
		asking.Go(func() {
			if _, err := client.Health(t.Context()); err != nil {
				t.Error(err)
			}
		})
		asking.Wait()

		alone, cancelAlone := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancelAlone()
		began := time.Now()
		if _, err := client.Health(alone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAQuestionThatNobodyWaitsForAnyMoreIsNotPutAndACommandThatWasGivenUpIsNotCounted(t *testing.T) {
	for name, test := range map[string]struct {
		sessionTimeout time.Duration
		questions      int
	}{
		"before it was put": {gatherTime / 2, 0}, "while it ran": {100 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runner := &slow{}
				client := New(runner, Options{OnCommand: func(kind string, took time.Duration, err error) {
					t.Errorf("told of %q, %s, %v", kind, took, err)
				}})
				for what, ask := range map[string]func(ctx context.Context) error{
					"a question": func(ctx context.Context) error { _, err := client.Health(ctx); return err },
					"a change":   func(ctx context.Context) error { return client.Out(ctx, 3) },
				} {
					ctx, cancel := context.WithTimeout(t.Context(), test.sessionTimeout)
					if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", what, err)
					}
					cancel()
				}
				synctest.Wait()
				// A change does not wait for others that want the same.
				if want := test.questions + 1; len(runner.started) != want {
					t.Errorf("%d commands were started, want %d", len(runner.started), want)
				}
			})
		})
	}
}
