package rescue

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// The first argument of a child is one of these tasks.
const (
	childVerify  = "verify"
	childCheck   = "check"
	childSalvage = "salvage"
)

// Options configure how a file that may be damaged is read.
type Options struct {
	// Child is the command line of a program that calls [Child] with the arguments that EKCO adds. If it is empty, this
	// process reads the file itself.
	Child []string
	// ExtraTimeout is added to the timeout of the child.
	ExtraTimeout time.Duration
	// Now is the clock for [Salvage].
	Now func() time.Time
}

// Child is the main function of a child process, which reads a file that may be damaged. The arguments are "verify
// PATH", "check PATH" or "salvage PATH". The program in [Options].Child must pass its last two arguments, its standard
// output and its standard error, and exit with the returned code.
func Child(arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) != 2 {
		fmt.Fprintf(stderr, "usage: %s|%s|%s PATH\n", childVerify, childCheck, childSalvage)
		return 2
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	var err error
	switch path := arguments[1]; arguments[0] {
	case childVerify:
		err = json.NewEncoder(out).Encode(answerOf(verify(path, false)))
	case childCheck:
		err = json.NewEncoder(out).Encode(answerOf(Verify(path)))
	case childSalvage:
		err = scavenge(path, out)
	default:
		err = fmt.Errorf("unknown task %q", arguments[0])
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// answer is what a child writes to its standard output as JSON: its report, and the text and the kind of its error.
type answer struct {
	Report  Report `json:"report"`
	Problem string `json:"problem,omitempty"`
	Kind    string `json:"kind,omitempty"`
}

var errorKinds = map[string]error{
	"damaged": journal.ErrDamaged, "format": journal.ErrOtherFormat,
	"foreign": journal.ErrNotAJournal, "blank": ErrBlank, "locked": journal.ErrLocked,
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

// childError is an error of the child. It has the text of that error, and wraps the sentinel error kind.
type childError struct {
	text string
	kind error
}

func (c childError) Error() string { return c.text }
func (c childError) Unwrap() error { return c.kind }

func (a answer) result() (Report, error) {
	if a.Problem == "" {
		return a.Report, nil
	}
	return a.Report, childError{text: a.Problem, kind: errorKinds[a.Kind]}
}

// Inspect verifies a journal's file before EKCO opens it. The caller must hold the lock. The error wraps
// [journal.ErrUnverified] if its cause is not the content of the file.
func Inspect(ctx context.Context, path string, options Options) (report Report, err error) {
	if len(options.Child) > 0 {
		limit, err := childLimit(path)
		if err != nil {
			return report, err
		}
		report, err = ask(ctx, limit+options.ExtraTimeout, append(slices.Clip(options.Child), childVerify, path))
		return report, markUnverified(ctx, err)
	}
	report, err = verify(path, false)
	return report, markUnverified(ctx, err)
}

// VerifyIn runs [Verify] in a child; see [Options]. If the child did not finish, the error wraps
// [journal.ErrUnverified]. There is no time limit except ctx.
func VerifyIn(ctx context.Context, child []string, path string) (Report, error) {
	report, err := ask(ctx, noLimit, append(slices.Clip(child), childCheck, path))
	return report, markUnverified(ctx, err)
}

// markUnverified adds [journal.ErrUnverified] to an error whose cause is not the content of the file.
func markUnverified(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || isFinding(err) {
		return err
	}
	return fmt.Errorf("%w, and is unchanged: %w", journal.ErrUnverified, err)
}

// isFinding reports whether the error is a result of the verification, and not a failure to verify.
func isFinding(err error) bool {
	for _, sentinel := range []error{journal.ErrDamaged, journal.ErrOtherFormat, journal.ErrNotAJournal, journal.ErrLocked, ErrBlank} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// ask runs a child that verifies a file, and returns its answer.
func ask(ctx context.Context, limit time.Duration, argv []string) (Report, error) {
	var stdout bytes.Buffer
	if err := runFor(ctx, limit, argv, &stdout); err != nil {
		return Report{}, err
	}
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return Report{}, fmt.Errorf("no answer from the process that reads the file: %w", err)
	}
	return a.result()
}
