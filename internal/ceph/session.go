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

// Why a session cannot be used any more. Its queries are then repeated in processes of their own, which have
// exit codes: the client never guesses.
var (
	errEnded      = errors.New("the process has ended")
	errRefused    = errors.New("ceph refused a query")
	errUnexpected = errors.New("unexpected output from ceph")
	errForm       = errors.New("the answer is not in the form of this command")
)

// session is a ceph process that reads queries from its input and answers them one after the other, each with
// at most one answer. It is never used for changes, nor by two callers at once.
type session struct {
	place string
	began time.Time
	in    *io.PipeWriter
	stop  context.CancelFunc
	// ended is closed when Interact has returned; then panicked is set if it panicked.
	ended    chan struct{}
	panicked *parallel.PanicError
	// idle ends the process if it gets no query for too long.
	idle *time.Timer

	mu     sync.Mutex
	values values
	// line is the unfinished last line of stderr.
	line  []byte
	batch *batch
	// fault is set when the session cannot be used any more.
	fault error
}

// batch is the queries that are being answered.
type batch struct {
	asked   []command
	answers [][]byte
	err     error
	over    chan struct{}
}

// open starts a process, which ends at its timeout at the latest.
func (c *Client) open(ctx context.Context, runner InteractiveRunner, place string) *session {
	limit := c.lifetime() + c.options.Grace
	running, stop := context.WithTimeout(kube.ReadsOnly(context.WithoutCancel(ctx)), limit)
	out, in := io.Pipe()
	v := &session{place: place, began: time.Now(), in: in, stop: stop, ended: make(chan struct{})}
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

// writer is a function as an [io.Writer].
type writer func([]byte) error

// Write implements [io.Writer].
func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// query sends queries and waits for their answers. It returns all answers or an error. After an error the
// session cannot be used any more.
func (v *session) query(ctx context.Context, asked []command) ([][]byte, error) {
	t, err := v.begin(asked)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.over:
		return t.answers, t.err
	case <-ctx.Done():
		v.fail(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// begin writes the queries, unless output of earlier ones is left. It refuses a command that is not in the
// table, or two of one form.
func (v *session) begin(asked []command) (*batch, error) {
	var lines strings.Builder
	forms := make(map[string]bool)
	for _, command := range asked {
		form, ok := command.form()
		if !ok || forms[form] {
			return nil, fmt.Errorf("%s: %w: not for the interactive process", command, ErrInvalid)
		}
		forms[form] = true
		lines.WriteString(command.line())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.fault != nil:
		return nil, v.fault
	case v.batch != nil || !v.values.between() || len(v.line) > 0:
		return nil, errUnexpected
	}
	t := &batch{asked: asked, over: make(chan struct{})}
	v.batch = t
	// It ends with the process at the latest.
	go func() { _, _ = io.WriteString(v.in, lines.String()) }()
	return t, nil
}

// readStdout takes what ceph writes to stdout.
func (v *session) readStdout(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range p {
		if v.fault != nil {
			break
		}
		value, err := v.values.next(b)
		if err != nil {
			return v.failed(err)
		}
		if value != nil {
			v.answered(value)
		}
	}
	return v.fault
}

// answered expects mu to be held.
func (v *session) answered(value []byte) {
	t := v.batch
	switch {
	case t == nil:
		_ = v.failed(errUnexpected)
	case !t.asked[len(t.answers)].answeredBy(value):
		_ = v.failed(fmt.Errorf("%s: %w", t.asked[len(t.answers)], errForm))
	default:
		t.answers = append(t.answers, value)
		if len(t.answers) == len(t.asked) {
			v.batch = nil
			close(t.over)
		}
	}
}

// readStderr takes what ceph writes to stderr. Anything unexpected there ends the session, since it may belong
// to any of the queries.
func (v *session) readStderr(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line = append(v.line, p...)
	for {
		line, rest, whole := bytes.Cut(v.line, []byte("\n"))
		if !whole {
			break
		}
		v.line = rest
		v.stderrLine(strings.TrimSpace(string(line)))
	}
	if len(v.line) > maxLine {
		return v.failed(fmt.Errorf("%w: a line of more than %d KiB", errUnexpected, maxLine>>10))
	}
	return v.fault
}

// maxLine is the maximum length of a line on stderr, in bytes.
const maxLine = 64 << 10

// clientLog matches log lines of Ceph's client, which can appear at any time.
var clientLog = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}`)

// stderrLine expects mu to be held.
func (v *session) stderrLine(line string) {
	switch {
	case line == "", line == pgDumpNotice, clientLog.MatchString(line):
	case strings.HasPrefix(line, "Error E"):
		_ = v.failed(fmt.Errorf("%w: %s", errRefused, line))
	default:
		_ = v.failed(fmt.Errorf("%w: %s", errUnexpected, line))
	}
}

func (v *session) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.failed(err)
}

// failed expects mu to be held. The first fault stays.
func (v *session) failed(err error) error {
	if v.fault == nil {
		v.fault = err
	}
	if t := v.batch; t != nil {
		v.batch, t.answers, t.err = nil, nil, v.fault
		close(t.over)
	}
	return v.fault
}

// usable reports whether the session can take more queries.
func (v *session) usable() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fault == nil
}

// end closes the input, at which the process ends, and stops it after the grace.
func (v *session) end(grace time.Duration) {
	_ = v.in.Close()
	time.AfterFunc(grace, v.stop)
}
