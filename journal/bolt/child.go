package bolt

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The work that is done in a child, by its first argument.
const (
	childVerify  = "verify"
	childSalvage = "salvage"
)

// A child that takes longer than this is taken to hang.
const (
	childGrace         = 15 * time.Second
	childBytesPerSec   = 4 << 20
	childStderrToQuote = 2 << 10
)

// Child does, in a process of its own, the reading of a file that may be
// damaged: "verify PATH" or "salvage PATH". The program that [Options].Child
// names calls it with the arguments that this package adds, its standard output
// and standard error, and exits with what it returns.
func Child(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) != 2 {
		fmt.Fprintf(stderr, "usage: %s|%s PATH\n", childVerify, childSalvage)
		return 2
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	var err error
	switch path := arguments[1]; arguments[0] {
	case childVerify:
		err = json.NewEncoder(out).Encode(answerOf(verify(path, false)))
	case childSalvage:
		err = scavenge(path, out)
	default:
		err = fmt.Errorf("unknown work %q", arguments[0])
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// answer carries a report and what kind of error came with it through a pipe.
type answer struct {
	Report  Report `json:"report"`
	Problem string `json:"problem,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

var errorKinds = map[string]error{
	"damaged": journal.ErrDamaged, "format": journal.ErrOtherFormat,
	"foreign": journal.ErrNotAJournal, "blank": errBlank,
	"permission": fs.ErrPermission, "missing": fs.ErrNotExist,
}

func answerOf(report Report, err error) answer {
	a := answer{Report: report}
	if err == nil {
		return a
	}
	a.Problem = err.Error()
	for kind, sentinel := range errorKinds {
		if errors.Is(err, sentinel) {
			a.Kind = kind
		}
	}
	return a
}

// carried is an error from the child: its text, and what callers test for.
type carried struct {
	text string
	kind error
}

func (c carried) Error() string { return c.text }
func (c carried) Unwrap() error { return c.kind }

func (a answer) result() (Report, error) {
	if a.Problem == "" {
		return a.Report, nil
	}
	return a.Report, carried{text: a.Problem, kind: errorKinds[a.Kind]}
}

// inspect verifies the file before it is opened. It expects the lock to be
// held.
func inspect(ctx context.Context, path string, options Options) (Report, error) {
	if len(options.Child) == 0 {
		return verify(path, false)
	}
	var stdout bytes.Buffer
	if err := runChild(ctx, options.Child, childVerify, path, &stdout); err != nil {
		return Report{}, fmt.Errorf("verify journal %s: %w", path, err)
	}
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return Report{}, damaged("verify journal %s: its answer: %w", path, err)
	}
	return a.result()
}

// runChild does the work in a child. Its error wraps [journal.ErrDamaged] when
// the child died of the file, not when it could not be started.
func runChild(ctx context.Context, argv []string, work, path string, stdout io.Writer) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return runFor(ctx, childLimit(info.Size()), append(argv[:len(argv):len(argv)], work, path), stdout)
}

func childLimit(size int64) time.Duration {
	return childGrace + time.Duration(size/childBytesPerSec)*time.Second
}

func runFor(ctx context.Context, limit time.Duration, argv []string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	stderr := &quote{limit: childStderrToQuote}
	command.Stdout, command.Stderr, command.WaitDelay = stdout, stderr, time.Second
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the process for it: %w", err)
	}
	if err := command.Wait(); err != nil {
		return damaged("the process for it died: %w%s", errors.Join(err, context.Cause(ctx)), stderr)
	}
	return nil
}

// quote keeps the first bytes of what a child says about its death.
type quote struct {
	limit int
	text  []byte
}

func (q *quote) Write(p []byte) (int, error) {
	q.text = append(q.text, p[:min(len(p), q.limit-len(q.text))]...)
	return len(p), nil
}

func (q *quote) String() string {
	if len(q.text) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q", q.text)
}
