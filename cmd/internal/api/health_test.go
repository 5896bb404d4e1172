package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// countedHealth counts who is asked, and needs a moment to answer.
type countedHealth struct{ asked atomic.Int32 }

func (c *countedHealth) Unready(ctx context.Context) []string {
	c.asked.Add(1)
	select {
	case <-time.After(10 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return []string{ctx.Err().Error()}
	}
}

func TestThousandsWhoAskForReadinessTakeOneTurnOfTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health := &countedHealth{}
		handler := readyz(health, quiet())
		ask := func(ctx context.Context) {
			answer := httptest.NewRecorder()
			handler(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
			if answer.Code != http.StatusOK {
				t.Errorf("answered %d: %s", answer.Code, answer.Body)
			}
		}
		left, leave := context.WithCancel(t.Context())
		leave() // who leaves early spoils nobody's answer
		var asking sync.WaitGroup
		for i := range 2000 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = left
			}
			asking.Go(func() { ask(ctx) })
		}
		asking.Wait()
		if n := health.asked.Load(); n != 1 {
			t.Errorf("the loop was asked %d times, want once", n)
		}
		time.Sleep(readyMaxAge)
		ask(t.Context())
		if n := health.asked.Load(); n != 2 {
			t.Errorf("asked %d times after the answer is old, want twice", n)
		}
	})
}
