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

// watchRetryInterval is the time before EKCO retries a forbidden watch. It is long because each attempt writes a line
// to the API server's audit log.
const watchRetryInterval = 5 * time.Minute

// access is EKCO's permission for a resource.
type access int

const (
	canWatch access = iota
	canList
	canNothing
)

// gate stores EKCO's permissions for a resource, and logs each change of them once. All feeds of a source share it.
type gate struct {
	resource string
	log      *slog.Logger
	// essential is true if EKCO cannot work without the resource.
	essential bool

	mu sync.Mutex
	// poll is the interval of reads if a watch is forbidden or impossible.
	poll time.Duration
	// verb is the verb with which EKCO reads the resource.
	verb   string
	access access
	// wasRead is true after a read has succeeded.
	wasRead bool
	// listError is the error of reading the resource; watchError is the error of watching it.
	listError, watchError error
	// failure is the error of the last read, nil after a success. loggedLevel is the level at which it was logged.
	failure     error
	loggedLevel slog.Level
	// noWatchUntil is the time at which to retry a watch.
	noWatchUntil time.Time
}

func newGate(resource string, poll time.Duration, log *slog.Logger) *gate {
	return &gate{resource: resource, poll: poll, verb: "listed", log: log}
}

// polls declares that the resource has no watch, and sets the interval of reads.
func (g *gate) polls(interval time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poll, g.verb = interval, "read"
}

// interval returns the interval of reads without a watch.
func (g *gate) interval() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.poll
}

// watchRefused returns the last refusal if it is too early to retry the watch.
func (g *gate) watchRefused() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.noWatchUntil) {
		return g.watchError
	}
	return nil
}

// refuseWatch records that a watch is forbidden. A list may be forbidden, too.
func (g *gate) refuseWatch(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noWatchUntil = time.Now().Add(watchRetryInterval)
	if g.access == canWatch {
		g.access = canList
		g.log.Info("EKCO may not watch the resource: polling instead", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.watchError = err
}

// refuseList records that a list is forbidden, or that the resource does not exist.
func (g *gate) refuseList(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != canNothing {
		level := slog.LevelInfo
		if isMissing(err) || !g.essential && !g.wasRead {
			level = slog.LevelDebug // most clusters have only a part of the add-ons, and of their roles; the status has a list
		}
		g.log.Log(context.Background(), level, "the resource cannot be "+g.verb+": EKCO does not observe it, and retries", "resource", g.resource, "interval", g.poll, "error", err)
	}
	g.access, g.listError, g.failure = canNothing, err, nil
}

// failList records that a read failed for another reason. It logs one failure, until a read succeeds or is refused.
func (g *gate) failList(err error, level slog.Level) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.loggedLevel = level
		g.log.Log(context.Background(), level, "the resource cannot be "+g.verb+": EKCO retries with growing pauses",
			"resource", g.resource, "at_least_every", g.poll, "error", err)
	}
	g.failure = err
}

// permitList records that a list succeeded.
func (g *gate) permitList() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wasRead = true
	if g.failure != nil {
		g.failure = nil
		g.log.Log(context.Background(), min(g.loggedLevel, slog.LevelInfo), "the resource can be "+g.verb+" again", "resource", g.resource)
	}
	if g.access != canNothing {
		return
	}
	g.log.Info("the resource can be "+g.verb+" now: EKCO observes it from now on", "resource", g.resource)
	g.access, g.listError = canList, nil
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
	g.access, g.listError, g.watchError = canWatch, nil, nil
	g.noWatchUntil = time.Time{}
}

// mustPoll reports whether the next read must wait for the poll interval.
func (g *gate) mustPoll() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access != canWatch
}

// cannotList reports whether EKCO cannot even list the resource.
func (g *gate) cannotList() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.access == canNothing
}

// absenceText returns a text for persons about what EKCO cannot observe. It returns "" if EKCO can observe all, or if
// the resource does not exist, for example because an add-on is not installed. During an outage it does not mention
// that the API server does not answer.
func (g *gate) absenceText(outage bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	reported := outage && errors.Is(kube.Sentinel(g.failure), kube.ErrUnavailable)
	if g.failure != nil && !reported {
		return fmt.Sprintf("%s: cannot be %s; EKCO retries at least every %s (%s)", g.resource, g.verb, g.poll, shortError(g.failure))
	}
	switch {
	case g.access == canList:
		return fmt.Sprintf("%s: watch is forbidden; EKCO polls every %s (%s)", g.resource, g.poll, shortError(g.watchError))
	case g.access == canNothing && (g.essential || !isMissing(g.listError)):
		return fmt.Sprintf("%s: not observed; EKCO retries every %s (%s)", g.resource, g.poll, shortError(g.listError))
	}
	return ""
}

// shortError shortens an error. It keeps only the missing permission, or the name of the API that does not answer,
// which the status reports separately. The log has the whole error.
func shortError(err error) string {
	if errors.Is(err, kube.ErrUnavailable) {
		return kube.ErrUnavailable.Error()
	}
	var lacking interface{ Lacks() string }
	if errors.As(err, &lacking) {
		return lacking.Lacks()
	}
	return err.Error()
}
