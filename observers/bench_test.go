package observers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paper is a Recorder that keeps what it is given.
type paper struct {
	mu      sync.Mutex
	batches [][]journal.Draft
	read    int
	// broken is what Record returns, nil while the journal can be written.
	broken error
	tries  int
	// slow is how long Record takes.
	slow time.Duration
}

func (p *paper) Record(ctx context.Context, drafts ...journal.Draft) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.slow > 0 {
		<-time.After(p.slow)
	}
	if p.broken != nil {
		return p.broken
	}
	for _, draft := range drafts {
		if _, _, err := draft.Encode(); err != nil {
			return err
		}
	}
	p.batches = append(p.batches, slices.Clone(drafts))
	return nil
}

func (p *paper) breakWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

// take returns what was written since the last time, one line a fact.
func (p *paper) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, batch := range p.batches[p.read:] {
		for _, draft := range batch {
			lines = append(lines, line(draft))
		}
	}
	p.read = len(p.batches)
	return lines
}

func line(d journal.Draft) string {
	parts := []string{string(d.Type), d.Subject.Name, d.Subject.UID}
	switch p := d.Payload.(type) {
	case journal.NodeObserved:
		parts = append(parts, string(p.Role))
		if since, ok := p.Unreachable(); ok {
			parts = append(parts, "unreachable since", since.Format(time.TimeOnly))
		}
		if p.Excluded {
			parts = append(parts, "excluded")
		}
		if slices.ContainsFunc(p.Taints, func(t journal.Taint) bool { return t.Key == journal.TaintUnschedulable }) {
			parts = append(parts, "cordoned")
		}
		if p.Flapping {
			parts = append(parts, "flapping")
		}
		if p.Flaps > 0 {
			parts = append(parts, fmt.Sprintf("lost %d times", p.Flaps))
		}
		if p.UnreachableFor > 0 {
			parts = append(parts, "for", time.Duration(p.UnreachableFor).Round(time.Second).String())
		}
	case journal.NodeGone:
		parts = append(parts, p.Reason)
	case journal.PodTerminating:
		parts = append(parts, "on", d.Subject.Node, p.NodeUID, "ends", p.DeletionTimestamp.Format(time.TimeOnly))
	case journal.PodGone:
		parts = append(parts, "from", d.Subject.Node, p.NodeUID)
	case journal.APILost:
		parts = append(parts, p.Error)
	case journal.APIRecovered:
		parts = append(parts, "lost at", p.LostAt.Format(time.TimeOnly))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// bench is one run of the observers in a world.
type bench struct {
	*testing.T
	*world
	*Observers
	paper *paper
	log   *strings.Builder
	lags  map[string]time.Duration
}

// watching runs a test in which the observers have started. Its time is
// simulated and begins at midnight, 1 January 2000.
func watching(t *testing.T, prepare func(*bench, *Options), test func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, world: newWorld(), paper: &paper{}, log: &strings.Builder{}, lags: map[string]time.Duration{}}
		options := Options{
			Cluster: b.world, Recorder: b.paper,
			Log: slog.New(slog.NewTextHandler(b.log, nil)),
			Lag: func(resource string, lag time.Duration) { b.lags[resource] = lag },
		}
		if prepare != nil {
			prepare(b, &options)
		}
		b.Observers = Start(t.Context(), options)
		defer b.Stop()
		b.settle()
		test(b)
	})
}

// settle lets everything happen that is due within a tenth of a second.
func (b *bench) settle() { b.pass(100 * time.Millisecond) }

// pass lets simulated time pass.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wrote checks what was written since the last call.
func (b *bench) wrote(want ...string) {
	b.Helper()
	if diff := cmp.Diff(want, b.paper.take()); diff != "" {
		b.Fatalf("written facts (-want +got):\n%s", diff)
	}
}

// called checks how often something was asked of the API since the last call.
func (b *bench) called(want map[string]int) {
	b.Helper()
	got := map[string]int{}
	for _, call := range b.takeCalls() {
		got[call]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Fatalf("API calls (-want +got):\n%s", diff)
	}
}

func (b *bench) logged(text string) int { return strings.Count(b.log.String(), text) }

// knownNode is a node as the journal has it.
func knownNode(name, uid string) kube.Node { return kube.NodeOf(node(name, uid)) }

// named returns n distinct names.
func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}
