package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/apiproxy"
	"github.com/replicatedhq/ekco/test/await"
)

// gate is a proxy in front of the API server. It can hold one request before
// it is passed on, or hold its answer, so that a test can kill EKCO exactly
// there.
type gate struct {
	*apiproxy.Proxy

	mu     sync.Mutex
	holds  []*hold
	closed bool
	// interrupt, if there is one, is told of effects: those of purges, or what effectOf
	// says.
	interrupt *interrupter
	effectOf  func(*http.Request) string
	// execs are the times of execs into pods.
	execs stopwatch
	// open ends the requests under way, watches above all.
	open map[*http.Request]context.CancelFunc
}

// hold stops the next request that matches, until its client is gone or, if the
// API server has not acted on it yet, until it is released.
type hold struct {
	matches func(*http.Request) bool
	// afterEffect lets the API server act and holds only the answer.
	afterEffect bool
	// all keeps the hold for further requests.
	all bool
	// reached is closed when the request is held.
	reached  chan struct{}
	once     sync.Once
	released chan struct{}
	// waiting is how many requests are held.
	waiting atomic.Int64
}

// pass lets the request go on.
func (h *hold) pass() { close(h.released) }

// await waits until a request is held.
func (h *hold) await(t *testing.T) {
	t.Helper()
	h.awaitWithin(t, await.HangTimeout)
}

// awaitWithin is await with a limit of its own.
func (h *hold) awaitWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-h.reached:
	case <-time.After(limit):
		t.Fatalf("nothing was held within %s", limit)
	}
}

func newGate(t *testing.T, config *rest.Config) *gate {
	t.Helper()
	g := &gate{open: make(map[*http.Request]context.CancelFunc), effectOf: effectOf}
	g.Proxy = apiproxy.Start(t, config, apiproxy.HTTP1, g.around)
	t.Cleanup(func() { g.cut(true) })
	return g
}

// holdNth arms a hold for the request that matches, after letting skip others
// pass.
func (g *gate) holdNth(skip int, afterEffect bool, matches func(*http.Request) bool) *hold {
	seen := 0
	nth := func(r *http.Request) bool {
		if !matches(r) {
			return false
		}
		seen++
		return seen > skip
	}
	return g.arm(&hold{matches: nth, afterEffect: afterEffect})
}

// holdAll arms a hold for every request that matches, also when EKCO has given
// up and tries again, until it may pass.
func (g *gate) holdAll(matches func(*http.Request) bool) *hold {
	return g.arm(&hold{matches: matches, all: true})
}

func (g *gate) arm(h *hold) *hold {
	h.reached, h.released = make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, h)
	return h
}

// cut makes the API server seem to be gone, until restored.
func (g *gate) cut(gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = gone
	if gone {
		for _, end := range g.open {
			end()
		}
	}
}

// track lets cut end the request; the returned function forgets it.
func (g *gate) track(r *http.Request) (*http.Request, func()) {
	ctx, end := context.WithCancel(r.Context())
	tracked := r.WithContext(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[tracked] = end
	return tracked, func() {
		end()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, tracked)
	}
}

func (g *gate) take(r *http.Request) (h *hold, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, candidate := range g.holds {
		if candidate.matches(r) {
			if !candidate.all {
				g.holds = append(g.holds[:i:i], g.holds[i+1:]...)
			}
			return candidate, g.closed
		}
	}
	return nil, g.closed
}

func (g *gate) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, gone := g.take(r)
		r, forget := g.track(r)
		defer forget()
		effect := ""
		if h == nil && !gone && g.interrupt != nil {
			effect = g.effectOf(r)
		}
		if strings.HasSuffix(r.URL.Path, "/exec") {
			defer g.execs.start()()
		}
		switch {
		case gone:
			hangUp(w)
		case effect != "":
			g.interrupt.around(effect, w, r, next)
		case h == nil:
			next.ServeHTTP(w, r)
		case h.afterEffect:
			next.ServeHTTP(discard{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
			h.wait(r)
		default:
			if h.wait(r) {
				next.ServeHTTP(w, r)
			}
		}
	})
}

// wait holds the request, and reports whether it may go on.
func (h *hold) wait(r *http.Request) bool {
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	h.once.Do(func() { close(h.reached) })
	select {
	case <-r.Context().Done():
		return false
	case <-h.released:
		return true
	}
}

// drop ends what is held, and waits for that. That a client is gone is not noticed while nobody
// reads the body of its request, and what is let go then may be done or not.
func (g *gate) drop(t *testing.T, h *hold) {
	t.Helper()
	g.cut(true)
	defer g.cut(false)
	eventually(t, await.HangTimeout, "nothing is held", func() (bool, string) {
		n := h.waiting.Load()
		return n == 0, fmt.Sprint(n)
	})
}

// deletes matches the deletion of a Node, writesMirror a change of the
// ConfigMap that mirrors the open actions.
func deletes(node string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/nodes/"+node)
	}
}

func writesMirror(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/configmaps")
}

func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// discard is an answer that nobody sees.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
