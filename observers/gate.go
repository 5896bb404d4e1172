package observers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
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
// All feeds of a source share it.
type gate struct {
	resource string
	log      *slog.Logger
	// essential marks what EKCO sees nothing without.
	essential bool

	mu sync.Mutex
	// poll is how often to look where watching is not permitted, or impossible.
	poll time.Duration
	// verb is what is done with the resource when it is looked at.
	verb   string
	access access
	// why is why it cannot be looked at, unwatched why it cannot be watched.
	why, unwatched error
	// failure is why the last look said nothing, nil after one that did; said is how
	// loud that was said.
	failure error
	said    slog.Level
	// noWatchUntil is when to ask for a watch again.
	noWatchUntil time.Time
}

func newGate(resource string, poll time.Duration, log *slog.Logger) *gate {
	return &gate{resource: resource, poll: poll, verb: "listed", log: log}
}

// polls says that the resource has no watch, and how often it is read.
func (g *gate) polls(interval time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poll, g.verb = interval, "read"
}

// interval is how often to look where that is not watching.
func (g *gate) interval() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.poll
}

// watchRefused returns the last refusal while it is too early to ask again.
func (g *gate) watchRefused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.noWatchUntil) {
		return g.unwatched
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
	g.unwatched = err
}

// refuseList notes that a list is forbidden, or that the resource is missing.
func (g *gate) refuseList(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canNothing {
		g.log.Info("cannot be "+g.verb+": not observed until that changes", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.access, g.why, g.failure = canNothing, err, nil
}

// failList notes that a look failed in a way that says nothing of permissions. It
// says so once, until a look says something.
func (g *gate) failList(err error, level slog.Level) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.said = level
		g.log.Log(context.Background(), level, "cannot be "+g.verb+": tried again with growing pauses",
			"resource", g.resource, "at_least_every", g.poll, "error", err)
	}
	g.failure = err
}

// permitList notes that a list succeeded.
func (g *gate) permitList() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure != nil {
		g.failure = nil
		g.log.Log(context.Background(), min(g.said, slog.LevelInfo), "can be "+g.verb+" again", "resource", g.resource)
	}
	if g.access != canNothing {
		return
	}
	g.log.Info("can be "+g.verb+" now: observed from now on", "resource", g.resource)
	g.access, g.why = canList, nil
	if g.noWatchUntil.IsZero() {
		g.access = canWatch
	}
}

// permitWatch notes that a watch was opened.
func (g *gate) permitWatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canWatch {
		g.log.Info("watching is permitted now: no longer polling", "resource", g.resource)
	}
	g.access, g.why, g.unwatched = canWatch, nil, nil
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

// absence says for people what is missing; "" when nothing is, and for what is not there
// to be observed, such as an add-on that is not installed. In an outage it leaves out that
// the API server did not answer.
func (g *gate) absence(outage bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	toldAlready := outage && errors.Is(kube.Sentinel(g.failure), kube.ErrUnavailable)
	if g.failure != nil && !toldAlready {
		return fmt.Sprintf("%s: cannot be %s; tried again at least every %s (%s)", g.resource, g.verb, g.poll, brief(g.failure))
	}
	switch {
	case g.access == canList:
		return fmt.Sprintf("%s: watch is forbidden; polled every %s instead (%s)", g.resource, g.poll, brief(g.unwatched))
	case g.access == canNothing && (g.essential || !missing(g.why)):
		return fmt.Sprintf("%s: not observed; tried again every %s (%s)", g.resource, g.poll, brief(g.why))
	}
	return ""
}

// brief is an error for people: of a permission that is missing only which one that is, and
// nothing of what was asked of an API that does not answer at all, which the status says
// by itself. The whole error is in the log.
func brief(err error) string {
	if errors.Is(err, kube.ErrUnavailable) {
		return kube.ErrUnavailable.Error()
	}
	var lacking interface{ Lacks() string }
	if errors.As(err, &lacking) {
		return lacking.Lacks()
	}
	return err.Error()
}
