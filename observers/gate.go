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

// tryWatchAgain is how long EKCO does not retry a forbidden watch. Each attempt is a line in the API server's audit
// log.
const tryWatchAgain = 5 * time.Minute

// access is what EKCO is permitted to do with a resource.
type access int

const (
	canWatch access = iota
	canList
	canNothing
)

// gate knows EKCO's permissions for a resource, and logs each change once. All feeds of a source share it.
type gate struct {
	resource string
	log      *slog.Logger
	// essential is set if EKCO cannot work without the resource.
	essential bool

	mu sync.Mutex
	// poll is how often to read the resource if watching is forbidden or impossible.
	poll time.Duration
	// verb names how the resource is read.
	verb   string
	access access
	// why is the error of reading it, unwatched of watching it.
	why, unwatched error
	// failure is the error of the last read, nil after a success; said is the level at which it was logged.
	failure error
	said    slog.Level
	// noWatchUntil is when to retry a watch.
	noWatchUntil time.Time
}

func newGate(resource string, poll time.Duration, log *slog.Logger) *gate {
	return &gate{resource: resource, poll: poll, verb: "listed", log: log}
}

// polls sets that the resource has no watch, and how often it is read.
func (g *gate) polls(interval time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poll, g.verb = interval, "read"
}

// interval is how often to read the resource without a watch.
func (g *gate) interval() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.poll
}

// watchRefused returns the last refusal while it is too early to retry.
func (g *gate) watchRefused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.noWatchUntil) {
		return g.unwatched
	}
	return nil
}

// refuseWatch records that a watch is forbidden. A list may be forbidden, too.
func (g *gate) refuseWatch(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noWatchUntil = time.Now().Add(tryWatchAgain)
	if g.access == canWatch {
		g.access = canList
		g.log.Info("EKCO may not watch the resource: polling instead", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.unwatched = err
}

// refuseList records that a list is forbidden, or that the resource does not exist.
func (g *gate) refuseList(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canNothing {
		level := slog.LevelInfo
		if missing(err) {
			level = slog.LevelDebug // most clusters have only a part of the add-ons
		}
		g.log.Log(context.Background(), level, "cannot be "+g.verb+": not observed until that changes", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.access, g.why, g.failure = canNothing, err, nil
}

// failList records that a read failed for another reason. It logs that once, until a read succeeds or is refused.
func (g *gate) failList(err error, level slog.Level) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.said = level
		g.log.Log(context.Background(), level, "cannot be "+g.verb+": EKCO retries with growing pauses",
			"resource", g.resource, "at_least_every", g.poll, "error", err)
	}
	g.failure = err
}

// permitList records that a list succeeded.
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

// permitWatch records that a watch was opened.
func (g *gate) permitWatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canWatch {
		g.log.Info("EKCO may watch the resource now: no longer polling", "resource", g.resource)
	}
	g.access, g.why, g.unwatched = canWatch, nil, nil
	g.noWatchUntil = time.Time{}
}

// mustPoll reports whether the next read must wait for the poll interval.
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

// absence says, for people, what EKCO cannot observe; "" if nothing, and for what does not exist, such as an add-on
// that is not installed. During an outage it leaves out that the API server did not answer.
func (g *gate) absence(outage bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	reported := outage && errors.Is(kube.Sentinel(g.failure), kube.ErrUnavailable)
	if g.failure != nil && !reported {
		return fmt.Sprintf("%s: cannot be %s; EKCO retries at least every %s (%s)", g.resource, g.verb, g.poll, brief(g.failure))
	}
	switch {
	case g.access == canList:
		return fmt.Sprintf("%s: watch is forbidden; EKCO polls every %s (%s)", g.resource, g.poll, brief(g.unwatched))
	case g.access == canNothing && (g.essential || !missing(g.why)):
		return fmt.Sprintf("%s: not observed; EKCO retries every %s (%s)", g.resource, g.poll, brief(g.why))
	}
	return ""
}

// brief shortens an error: to the missing permission, or to the API that does not answer, which the status reports
// separately. The whole error is in the log.
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
