package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal"
)

// TestMain lets the test binary stand in for ekco where it runs itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == journalChildCommand {
		os.Exit(run(context.Background(), newApp(), os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == watched {
		os.Exit(runWatched(os.Args[2:]))
	}
	tempdir.InMemory()
	// The first use of os/signal starts goroutines for good, which must not be those of a bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fakeOperator answers from its fields and records what it is asked.
type fakeOperator struct {
	mu        sync.Mutex
	requests  []fsm.Request
	queries   []journal.Query
	words     []any
	explained api.Explanation
	// asked are the explanations that were asked for.
	asked []fsm.Request
	// things are the explained ones, about what was asked; thingErr is the answer.
	things   []api.ThingExplanation
	about    []api.ThingRequest
	thingErr error
	admitted api.Admission
	status   api.Status
	verified api.VerifyResult
	// importedFrom is what the last import was said to come from.
	importedFrom string
	err          error
	// askErr is the answer to questions, but not to status.
	askErr error
	// past and live are the events; live ones are sent to followers.
	past []journal.Event
	live []journal.Event
	// unread is the answer to who reads events.
	unread error
	// slow leaves a question without an answer.
	slow bool
	// lost ends a follower's stream with an error after the live events.
	lost bool
	// crowded ends it since too many others follow.
	crowded bool
	// closed counts how often it was hung up on.
	closed int
	// followed is closed when a follower has had every live event.
	followed chan struct{}
}

func (f *fakeOperator) Close() { f.closed++ }

func (f *fakeOperator) Status(context.Context) (api.Status, error) { return f.status, f.err }

func (f *fakeOperator) Events(ctx context.Context, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		f.mu.Lock()
		f.queries = append(f.queries, query)
		f.mu.Unlock()
		if f.unread != nil {
			yield(journal.Event{}, f.unread)
			return
		}
		events := append([]journal.Event(nil), f.past...)
		if query.Reverse {
			for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
				events[i], events[j] = events[j], events[i]
			}
		}
		sent := 0
		for _, event := range events {
			if query.Limit > 0 && sent == query.Limit {
				break
			}
			if query.Matches(event) {
				sent++
				if !yield(event, nil) {
					return
				}
			}
		}
		if !follow {
			return
		}
		for _, event := range f.live {
			if query.Matches(event) && !yield(event, nil) {
				return
			}
		}
		if f.lost {
			yield(journal.Event{}, errors.New("the operator ended the stream"))
			return
		}
		if f.crowded {
			yield(journal.Event{}, api.ErrCrowded)
			return
		}
		if f.followed != nil {
			close(f.followed)
		}
		<-ctx.Done()
	}
}

func (f *fakeOperator) Explain(ctx context.Context, request fsm.Request) (api.Explanation, error) {
	f.asked = append(f.asked, request)
	if f.slow {
		<-ctx.Done()
		return f.explained, ctx.Err()
	}
	return f.explained, errors.Join(f.err, f.askErr)
}

func (f *fakeOperator) ExplainThing(_ context.Context, r api.ThingRequest) ([]api.ThingExplanation, error) {
	f.about = append(f.about, r)
	return f.things, errors.Join(f.err, f.thingErr)
}

func (f *fakeOperator) Request(_ context.Context, r fsm.Request) (api.Admission, error) {
	f.requests = append(f.requests, r)
	return f.admitted, f.err
}

// request returns the first purge that was asked for.
func (f *fakeOperator) request(t *testing.T) fsm.Request {
	t.Helper()
	if len(f.requests) == 0 {
		t.Fatal("no purge was asked for")
	}
	return f.requests[0]
}

func (f *fakeOperator) word(w any) error {
	f.words = append(f.words, w)
	return f.err
}
func (f *fakeOperator) Do(_ context.Context, c api.Command) error        { return f.word(c) }
func (f *fakeOperator) Verify(context.Context) (api.VerifyResult, error) { return f.verified, f.err }

func (f *fakeOperator) Export(_ context.Context, w io.Writer, q journal.Query) error {
	lines := gzip.NewWriter(w)
	for _, e := range f.past {
		if _, err := lines.Write(append(e.Record(), '\n')); err != nil {
			return err
		}
	}
	return errors.Join(lines.Close(), f.word(q))
}

func (f *fakeOperator) Import(_ context.Context, from string, r io.Reader) (journal.JournalImported, error) {
	f.importedFrom = from
	content, err := io.ReadAll(r)
	return journal.JournalImported{Events: 2, FirstSeq: 1, LastSeq: 2}, errors.Join(err, f.word(string(content)))
}

// desk is a terminal, or a pipe, with commands to type.
type desk struct {
	t           *testing.T
	app         *app
	dir         string
	env         map[string]string
	out, errOut *bytes.Buffer
}

// newDesk returns a desk beside an operator; nil means that none runs.
func newDesk(t *testing.T, running *fakeOperator) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), out: new(bytes.Buffer), errOut: new(bytes.Buffer)}
	d.env = map[string]string{"JOURNAL": filepath.Join(d.dir, "journal.db")}
	d.app = &app{
		unread: &unreadGuard{},
		stdin:  strings.NewReader(""), stdout: d.out, stderr: d.errOut,
		env: func(name string) (string, bool) { text, ok := d.env[name]; return text, ok },
		now: func() time.Time { return noon }, words: capabilities(cluster{}).Vocabulary(),
		dial: func(context.Context, string, string) (operator, error) {
			if running == nil {
				return nil, api.ErrNoOperator
			}
			return running, nil
		},
		work: func(context.Context, config.Config, ringOptions, *slog.Logger) (api.Backend, <-chan struct{}, func() error, error) {
			return nil, nil, nil, errors.New("no ring in this test")
		},
	}
	return d
}

// types runs a command line and returns its exit code.
func (d *desk) types(args ...string) int { return d.typesUntil(context.Background(), args...) }

func (d *desk) typesUntil(ctx context.Context, args ...string) int {
	d.out.Reset()
	d.errOut.Reset()
	return run(ctx, d.app, args)
}

// expect checks the exit code and that both outputs have what they should.
func (d *desk) expect(code, wantCode int, wantOut, wantErr string) {
	d.t.Helper()
	if code != wantCode {
		d.t.Errorf("exit code %d, want %d", code, wantCode)
	}
	if !strings.Contains(d.out.String(), wantOut) {
		d.t.Errorf("standard output has no %q:\n%s", wantOut, d.out)
	}
	if !strings.Contains(d.errOut.String(), wantErr) {
		d.t.Errorf("standard error has no %q:\n%s", wantErr, d.errOut)
	}
}

func event(t *testing.T, seq uint64, action string, kind journal.Type, payload any) journal.Event {
	t.Helper()
	body, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Event{
		Seq: seq, Time: noon.Add(time.Duration(seq)*time.Second - time.Hour), Type: kind, Version: 1, Action: action,
		Subject: journal.NodeSubject("worker-2", "u2"), Actor: "operator", Payload: body,
	}
}
