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

// Why a conversation is of no use any more. What it was asked is then asked by a
// process of its own, with an exit code: nothing here is ever guessed.
var (
	errOver    = errors.New("the process has ended")
	errRefused = errors.New("ceph refuses a question")
	errUnasked = errors.New("it said what nobody had asked")
	errUnlike  = errors.New("the answer is not of the form of this question's")
)

// conversation is a ceph process that reads questions from its input and answers
// them one after the other, of which each has at most one answer. It is not for
// changes. Only one at a time has it.
type conversation struct {
	place string
	began time.Time
	in    *io.PipeWriter
	stop  context.CancelFunc
	// ended is closed when the process is over, or nobody waits for it; then panicked
	// is set if that was a panic.
	ended    chan struct{}
	panicked *parallel.PanicError
	// idle ends it when it has waited for questions for too long.
	idle *time.Timer

	mu     sync.Mutex
	values values
	// line is what it wrote to stderr without an end of line yet.
	line []byte
	turn *turn
	// fault is set once it is of no use.
	fault error
}

// turn is the questions that are being answered.
type turn struct {
	asked   []command
	answers [][]byte
	err     error
	over    chan struct{}
}

// open starts a process. It ends with its time at the latest.
func (c *Client) open(ctx context.Context, runner Conversing, place string) *conversation {
	limit := c.lifetime() + c.options.Grace
	running, stop := context.WithTimeout(kube.Question(context.WithoutCancel(ctx)), limit)
	out, in := io.Pipe()
	v := &conversation{place: place, began: time.Now(), in: in, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(v.ended)
		defer stop()
		var err error
		v.panicked = parallel.Catch(func() {
			_, err = runner.Converse(running, place, c.conversing(), out, writer(v.hear), writer(v.overhear))
		})
		_ = out.Close() // what is still written goes nowhere
		v.fail(cmp.Or(err, errOver))
	}()
	return v
}

// writer is a function that takes what is written.
type writer func([]byte) error

// Write implements [io.Writer].
func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ask puts questions and waits for their answers, which are all there or none. After
// an error nothing more can be asked.
func (v *conversation) ask(ctx context.Context, asked []command) ([][]byte, error) {
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

// begin writes the questions, if nothing is left over from what was before. What
// is in no table, or there twice in one form, is not written.
func (v *conversation) begin(asked []command) (*turn, error) {
	var lines strings.Builder
	forms := make(map[string]bool)
	for _, command := range asked {
		form, ok := command.form()
		if !ok || forms[form] {
			return nil, fmt.Errorf("%s: %w: it cannot be asked like this", command, ErrInvalid)
		}
		forms[form] = true
		lines.WriteString(command.line())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.fault != nil:
		return nil, v.fault
	case v.turn != nil || !v.values.between() || len(v.line) > 0:
		return nil, errUnasked
	}
	t := &turn{asked: asked, over: make(chan struct{})}
	v.turn = t
	// It ends with the process at the latest.
	go func() { _, _ = io.WriteString(v.in, lines.String()) }()
	return t, nil
}

// hear takes what is written to stdout.
func (v *conversation) hear(p []byte) error {
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
func (v *conversation) answered(value []byte) {
	t := v.turn
	switch {
	case t == nil:
		_ = v.failed(errUnasked)
	case !t.asked[len(t.answers)].answeredBy(value):
		_ = v.failed(fmt.Errorf("%s: %w", t.asked[len(t.answers)], errUnlike))
	default:
		t.answers = append(t.answers, value)
		if len(t.answers) == len(t.asked) {
			v.turn = nil
			close(t.over)
		}
	}
}

// overhear takes what is written to stderr. Where it says more than it may, it is
// of no use any more: what it is about cannot be told.
func (v *conversation) overhear(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line = append(v.line, p...)
	for {
		line, rest, whole := bytes.Cut(v.line, []byte("\n"))
		if !whole {
			break
		}
		v.line = rest
		v.remarked(strings.TrimSpace(string(line)))
	}
	if len(v.line) > longestLine {
		return v.failed(fmt.Errorf("%w: a line of more than %d KiB", errUnasked, longestLine>>10))
	}
	return v.fault
}

// longestLine is how long a line on stderr may be, in bytes.
const longestLine = 64 << 10

// logged are lines of the log of Ceph's client, which it may write at any moment.
var logged = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}`)

// remarked expects mu to be held.
func (v *conversation) remarked(line string) {
	switch {
	case line == "", line == remark, logged.MatchString(line):
	case strings.HasPrefix(line, "Error E"):
		_ = v.failed(fmt.Errorf("%w: %s", errRefused, line))
	default:
		_ = v.failed(fmt.Errorf("%w: %s", errUnasked, line))
	}
}

func (v *conversation) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.failed(err)
}

// failed expects mu to be held. The first fault stays.
func (v *conversation) failed(err error) error {
	if v.fault == nil {
		v.fault = err
	}
	if t := v.turn; t != nil {
		v.turn, t.answers, t.err = nil, nil, v.fault
		close(t.over)
	}
	return v.fault
}

// usable reports whether more can be asked.
func (v *conversation) usable() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fault == nil
}

// end lets the process end by itself, which it does at the end of its input, and
// waits for it no longer than the grace.
func (v *conversation) end(grace time.Duration) {
	_ = v.in.Close()
	time.AfterFunc(grace, v.stop)
}
