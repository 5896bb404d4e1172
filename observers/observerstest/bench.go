package observerstest

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
	"github.com/replicatedhq/ekco/observers/pods"
)

// Bench is one run of observers in a simulated world.
type Bench struct {
	*testing.T
	*World
	*observers.Observers
	Paper *Paper
	// Said has the log. Lags has the reported lags, by source.
	Said *Log
	Lags map[string]time.Duration
	// Settles is an option of the source of nodes. KnownNodes and KnownPods are options of the sources in
	// [Bench.Everything].
	Settles    time.Duration
	KnownNodes []kube.Node
	KnownPods  []pods.Known
	// Sources returns the sources. The default is [Bench.Everything].
	Sources func() []observers.Source
}

// Log is a log that a test can read while observers write it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Everything returns the sources of nodes and pods.
func (b *Bench) Everything() []observers.Source {
	return []observers.Source{
		nodes.New(nodes.Options{Nodes: b.Nodes(), Known: b.KnownNodes, Settles: b.Settles}),
		pods.New(pods.Options{On: b.PodsOn, Known: b.KnownPods}),
	}
}

// Watching runs a test with started observers. The test's time is simulated and begins at midnight, 1 January 2000.
func Watching(t *testing.T, prepare func(*Bench, *observers.Options), test func(*Bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &Bench{T: t, World: NewWorld(), Paper: &Paper{}, Said: &Log{}, Lags: map[string]time.Duration{}}
		b.Sources = b.Everything
		options := observers.Options{
			Probe: b.Probe, Recorder: b.Paper,
			Log: slog.New(slog.NewTextHandler(b.Said, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Lag: func(resource string, lag time.Duration) { b.Lags[resource] = lag },
		}
		if prepare != nil {
			prepare(b, &options)
		}
		options.Sources = b.Sources()
		b.Observers = observers.Start(t.Context(), options)
		defer b.Stop()
		b.Settle()
		test(b)
	})
}

// SetUnknown sets the nodes on which pods are watched: UID by name.
func (b *Bench) SetUnknown(nodes map[string]string) {
	b.Follow(func(yield func(observers.Thing) bool) {
		for name, uid := range nodes {
			if !yield(observers.Thing{Subject: journal.NodeSubject(name, uid), State: "Unknown", Data: lostNode{}}) {
				return
			}
		}
	})
}

// lostNode is the state of a node machine for a lost node.
type lostNode struct{}

// Lost returns true.
func (lostNode) Lost() bool { return true }

// Settle runs everything that is due within a tenth of a second.
func (b *Bench) Settle() { b.Pass(100 * time.Millisecond) }

// Pass lets simulated time pass.
func (b *Bench) Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Wrote fails the test unless exactly these drafts were written since the last call.
func (b *Bench) Wrote(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.Paper.Take()); diff != "" {
		b.Fatalf("written facts (-want +got):\n%s", diff)
	}
}

// WroteThings fails the test unless exactly these drafts about things were written since the last call.
func (b *Bench) WroteThings(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.Paper.Things()); diff != "" {
		b.Fatalf("written of things (-want +got):\n%s", diff)
	}
}

// Called fails the test unless exactly these API calls were made since the last call.
func (b *Bench) Called(want map[string]int) {
	b.Helper()
	got := map[string]int{}
	for _, call := range b.TakeCalls() {
		got[call]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("API calls (-want +got):\n%s", diff)
	}
}

// Logged counts how often the log contains the text.
func (b *Bench) Logged(text string) int { return strings.Count(b.Said.String(), text) }

// ReadyAfter waits until the observers are synced, at most for limit.
func (b *Bench) ReadyAfter(limit time.Duration) {
	b.Helper()
	began := time.Now()
	for !b.Synced() {
		if time.Since(began) > limit {
			b.Fatalf("the API answers, and EKCO is not ready after %s:\n%s", limit, b.Said)
		}
		b.Pass(time.Second)
	}
}

// Named returns n distinct names.
func Named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}
