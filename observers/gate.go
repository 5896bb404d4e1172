package observers

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// tryWatchAgain is how long a forbidden watch is not asked for again. Each try
// is a line in the API server's audit log.
const tryWatchAgain = 5 * time.Minute

// access is what EKCO is permitted to do with a resource.
type access int

const (
	canWatch access = iota
	canList
	canNothing
)

// gate remembers what EKCO may do with a resource, and says each change once.
// All watches of a resource share it.
type gate struct {
	resource string
	poll     time.Duration
	log      *slog.Logger

	mu     sync.Mutex
	access access
	why    error
	// noWatchUntil is when to ask for a watch again.
	noWatchUntil time.Time
}

func newGate(resource string, poll time.Duration, log *slog.Logger) *gate {
	return &gate{resource: resource, poll: poll, log: log}
}

// watchRefused returns the last refusal while it is too early to ask again.
func (g *gate) watchRefused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.noWatchUntil) {
		return g.why
	}
	return nil
}

// refuseWatch notes that a watch is forbidden. That a list is permitted is not
// known from that.
func (g *gate) refuseWatch(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noWatchUntil = time.Now().Add(tryWatchAgain)
	if g.access == canWatch {
		g.access = canList
		g.log.Info("watching is forbidden: polling instead", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.why = err
}

// refuseList notes that a list is forbidden, or that the resource is missing.
func (g *gate) refuseList(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canNothing {
		g.log.Info("cannot be listed: not observed until that changes", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.access, g.why = canNothing, err
}

// permitList notes that a list succeeded.
func (g *gate) permitList() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canNothing {
		return
	}
	g.log.Info("can be listed now: observed from now on", "resource", g.resource)
	g.access = canList
	if g.noWatchUntil.IsZero() {
		g.access, g.why = canWatch, nil
	}
}

// permitWatch notes that a watch was opened.
func (g *gate) permitWatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canWatch {
		g.log.Info("watching is permitted now: no longer polling", "resource", g.resource)
	}
	g.access, g.why = canWatch, nil
	g.noWatchUntil = time.Time{}
}

// mustPoll reports whether the next look must wait for the poll interval.
func (g *gate) mustPoll() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access != canWatch
}

// blind reports whether the resource cannot even be listed.
func (g *gate) blind() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access == canNothing
}

// absence says for people what is missing; "" when nothing is.
func (g *gate) absence() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch g.access {
	case canList:
		return fmt.Sprintf("%s: watch is forbidden; polled every %s instead (%v)", g.resource, g.poll, g.why)
	case canNothing:
		return fmt.Sprintf("%s: not observed; tried again every %s (%v)", g.resource, g.poll, g.why)
	}
	return ""
}
