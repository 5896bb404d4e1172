package e2e

import (
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// span is a time in which something went on.
type span struct{ began, ended time.Time }

// sumOf is how long the spans are, one after the other.
func sumOf(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.ended.Sub(s.began)
	}
	return sum
}

// clockOf is how long at least one of the spans went on.
func clockOf(spans []span) (clock time.Duration) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return a.began.Compare(b.began) })
	var until time.Time
	for _, s := range spans {
		if until.Before(s.began) {
			until = s.began
		}
		if s.ended.After(until) {
			clock += s.ended.Sub(until)
			until = s.ended
		}
	}
	return clock
}

// stopwatch notes when something went on.
type stopwatch struct {
	mu    sync.Mutex
	spans []span
}

// start begins a span; the returned function ends it.
func (s *stopwatch) start() (stop func()) {
	began := time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spans = append(s.spans, span{began, time.Now()})
	}
}

// within is how long at least one span went on between two moments.
func (s *stopwatch) within(from, to time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cut []span
	for _, span := range s.spans {
		if span.ended.After(from) && span.began.Before(to) {
			if span.began.Before(from) {
				span.began = from
			}
			if span.ended.After(to) {
				span.ended = to
			}
			cut = append(cut, span)
		}
	}
	return clockOf(cut)
}

// logOverhead says how much of a node's purge was not spent in ceph.
func (w *wholeCluster) logOverhead(o *operator, node string) {
	w.t.Helper()
	var requested, ended time.Time
	for _, event := range o.events("--node", node) {
		payload, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			if p.Kind == journal.ActionPurgeNode {
				requested = event.Time
			}
		case *journal.ActionEnded:
			ended = event.Time
		}
	}
	total, ceph := ended.Sub(requested), w.gate.execs.within(requested, ended)
	w.t.Logf("from its request to its end the purge took %s; an exec of ceph went on in %s of that; the rest is %s",
		total.Round(time.Millisecond), ceph.Round(time.Millisecond), (total - ceph).Round(time.Millisecond))
}
