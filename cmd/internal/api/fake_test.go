package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// dialVariable makes the test binary dial a socket and print what came of it,
// so that a test can do so as another user.
const dialVariable = "EKCO_TEST_DIAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(dialVariable); path != "" {
		_, err := Dial(context.Background(), path)
		fmt.Printf("%v forbidden=%v\n", err, errors.Is(err, ErrForbidden))
		return
	}
	goleak.VerifyTestMain(m)
}

// fakeBackend records what it is asked and answers from its fields.
type fakeBackend struct {
	mu     sync.Mutex
	asked  []any
	events []journal.Event
	more   chan journal.Event
	err    error

	status    Status
	explained Explanation
	things    []ThingExplanation
	admitted  Admission
	imported  journal.JournalImported
	verified  VerifyResult
	exported  string
}

func (f *fakeBackend) ask(what any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
	return f.err
}

func (f *fakeBackend) last() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

func (f *fakeBackend) Status(context.Context) (Status, error) { return f.status, f.ask("status") }

func (f *fakeBackend) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		if err := f.ask(query); err != nil {
			yield(journal.Event{}, err)
			return
		}
		sent := 0
		for _, event := range f.events {
			if !query.Matches(event) || query.Limit > 0 && sent == query.Limit {
				continue
			}
			sent++
			if !yield(event, nil) {
				return
			}
		}
		for follow {
			select {
			case event := <-f.more:
				if !yield(event, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fakeBackend) Explain(_ context.Context, r fsm.Request) (Explanation, error) {
	return f.explained, f.ask(r)
}

func (f *fakeBackend) ExplainThing(_ context.Context, r ThingRequest) ([]ThingExplanation, error) {
	return f.things, f.ask(r)
}

func (f *fakeBackend) Request(_ context.Context, r fsm.Request) (Admission, error) {
	return f.admitted, f.ask(r)
}
func (f *fakeBackend) Do(_ context.Context, c Command) error { return f.ask(c) }
func (f *fakeBackend) Verify(context.Context) (VerifyResult, error) {
	return f.verified, f.ask("verify")
}

func (f *fakeBackend) Export(_ context.Context, w io.Writer, q journal.Query) error {
	if _, err := io.WriteString(w, f.exported); err != nil {
		return err
	}
	return f.ask(q)
}

func (f *fakeBackend) Import(_ context.Context, from string, r io.Reader) (journal.JournalImported, error) {
	content, err := io.ReadAll(r)
	return f.imported, errors.Join(err, f.ask(string(content)+" from "+from))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve serves a backend on a socket until the test ends.
func serve(t *testing.T, backend Backend) (path string) {
	t.Helper()
	path, stop := serveUntilStopped(t, backend)
	t.Cleanup(stop)
	return path
}

func serveUntilStopped(t *testing.T, backend Backend) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.sock")
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := Serve(ctx, listener, backend, quiet()); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return path, func() { cancel(); serving.Wait() }
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	client, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// history returns n events with sequence numbers from 1.
func history(n int) []journal.Event {
	events := make([]journal.Event, n)
	for i := range events {
		events[i] = journal.Event{
			Seq: uint64(i + 1), Time: time.Unix(int64(1_700_000_000+i), 0).UTC(), Type: journal.TypeNodeGone, Version: 1,
			Subject: journal.NodeSubject("worker-1", "uid-1"), Actor: "observer/node", Payload: []byte(`{"reason":"deleted"}`),
		}
	}
	return events
}
