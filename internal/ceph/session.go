package ceph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/parallel"
)

// The reasons why a session cannot be used any more. The client then repeats the queries in separate processes,
// which have exit codes.
var (
	errEnded      = errors.New("the process has ended")
	errRefused    = errors.New("ceph refused a query")
	errUnexpected = errors.New("unexpected output from ceph")
	errForm       = errors.New("the answer is not in the form of this command")
)

// session is a ceph process that reads queries from stdin and answers them in order, each with at most one answer. The
// client never uses it for changes, or for two callers at the same time.
type session struct {
	place string
	began time.Time
	stdin *io.PipeWriter
	stop  context.CancelFunc
	// ended is closed when Interact has returned. If Interact panicked, panicked is set before that.
	ended    chan struct{}
	panicked *parallel.PanicError
	// idle ends the process if it gets no query for keepIdle.
	idle *time.Timer

	mu     sync.Mutex
	values values
	// stderrLine is the unfinished last line of stderr.
	stderrLine []byte
	batch      *batch
	// fault is set when the session cannot be used any more.
	fault error
}

// batch is a group of queries that the process answers now.
type batch struct {
	queries []command
	answers [][]byte
	err     error
	done    chan struct{}
}

// open starts a session. A timeout limits the lifetime of its process.
func (c *Client) open(ctx context.Context, runner InteractiveRunner, place string) *session {
	limit := c.lifetime() + c.options.Grace
	running, stop := context.WithTimeout(kube.ReadsOnly(context.WithoutCancel(ctx)), limit)
	out, in := io.Pipe()
	v := &session{place: place, began: time.Now(), stdin: in, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(v.ended)
		defer stop()
		var err error
		v.panicked = parallel.Catch(func() {
			_, err = runner.Interact(running, place, c.interactiveArgv(), out, writer(v.readStdout), writer(v.readStderr))
		})
		_ = out.Close() // drop later output
		v.fail(cmp.Or(err, errEnded))
	}()
	return v
}

// writer makes an [io.Writer] of a function.
type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// query sends queries and waits for their answers. It returns all answers or an error. After an error the
// session cannot be used any more.
func (s *session) query(ctx context.Context, asked []command) ([][]byte, error) {
	b, err := s.begin(asked)
	if err != nil {
		return nil, err
	}
	select {
	case <-b.done:
		return b.answers, b.err
	case <-ctx.Done():
		s.fail(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// begin writes the queries. It returns an error if output of earlier queries is left, if a command is not in
// interactiveCommands, or if two commands have the same form.
func (s *session) begin(asked []command) (*batch, error) {
	var lines strings.Builder
	forms := make(map[string]bool)
	for _, command := range asked {
		form, ok := command.form()
		if !ok || forms[form] {
			return nil, fmt.Errorf("%s: %w: the interactive process must not run it", command, ErrInvalid)
		}
		forms[form] = true
		lines.WriteString(command.line())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fault != nil:
		return nil, s.fault
	case s.batch != nil || !s.values.isEmpty() || len(s.stderrLine) > 0:
		return nil, errUnexpected
	}
	b := &batch{queries: asked, done: make(chan struct{})}
	s.batch = b
	// The goroutine ends at the latest when the process ends.
	go func() { _, _ = io.WriteString(s.stdin, lines.String()) }()
	return b, nil
}

// readStdout receives ceph's stdout.
func (s *session) readStdout(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range p {
		if s.fault != nil {
			break
		}
		value, err := s.values.next(b)
		if err != nil {
			return s.failLocked(err)
		}
		if value != nil {
			s.addAnswer(value)
		}
	}
	return s.fault
}

// addAnswer adds an answer to the batch. The caller must hold mu.
func (s *session) addAnswer(value []byte) {
	b := s.batch
	switch {
	case b == nil:
		_ = s.failLocked(errUnexpected)
	case !b.queries[len(b.answers)].answeredBy(value):
		_ = s.failLocked(fmt.Errorf("%s: %w", b.queries[len(b.answers)], errForm))
	default:
		b.answers = append(b.answers, value)
		if len(b.answers) == len(b.queries) {
			s.batch = nil
			close(b.done)
		}
	}
}

// readStderr receives ceph's stderr. An unexpected line ends the session, because it may belong to any of the
// queries.
func (s *session) readStderr(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stderrLine = append(s.stderrLine, p...)
	for {
		line, rest, whole := bytes.Cut(s.stderrLine, []byte("\n"))
		if !whole {
			break
		}
		s.stderrLine = rest
		s.handleStderrLine(strings.TrimSpace(string(line)))
	}
	if len(s.stderrLine) > maxLine {
		return s.failLocked(fmt.Errorf("%w: a line of more than %d KiB", errUnexpected, maxLine>>10))
	}
	return s.fault
}

// maxLine is the maximum length of a line on stderr, in bytes.
const maxLine = 64 << 10

// clientLog matches log lines of Ceph's client, which can appear at any time.
var clientLog = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}`)

// handleStderrLine ignores expected lines. Any other line ends the session. The caller must hold mu.
func (s *session) handleStderrLine(line string) {
	switch {
	case line == "", line == pgDumpNotice, clientLog.MatchString(line):
	case strings.HasPrefix(line, "Error E"):
		_ = s.failLocked(fmt.Errorf("%w: %s", errRefused, line))
	default:
		_ = s.failLocked(fmt.Errorf("%w: %s", errUnexpected, line))
	}
}

func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.failLocked(err)
}

// failLocked ends the session and its batch with an error, and returns the first error of the session. The caller
// must hold mu.
func (s *session) failLocked(err error) error {
	if s.fault == nil {
		s.fault = err
	}
	if b := s.batch; b != nil {
		s.batch, b.answers, b.err = nil, nil, s.fault
		close(b.done)
	}
	return s.fault
}

// usable reports whether the session can take more queries.
func (s *session) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault == nil
}

// end closes stdin, so that the process ends. After the grace it stops the process.
func (s *session) end(grace time.Duration) {
	_ = s.stdin.Close()
	time.AfterFunc(grace, s.stop)
}
