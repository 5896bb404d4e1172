package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// These are the exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitNotAJournal is the exit code of "journal verify" for a file that is no journal.
	exitNotAJournal = 3
)

// exitError is an exit code without a message, because the command has already printed the error.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// printError prints the error of the command and returns its exit code.
func printError(stderr io.Writer, command string, err error) int {
	if err == nil || errors.Is(err, errReaderLeft) {
		return exitDone
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintln(stderr, "ekco: "+view.Clean(line))
	}
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		_, _ = fmt.Fprintf(stderr, "Run \"%s --help\" for what is possible.\n", command)
		return exitUsage
	}
	if _, ok := errors.AsType[statusCheckError](err); ok {
		return exitNeedsYou
	}
	if errors.Is(err, config.ErrInvalid) || errors.Is(err, api.ErrInvalid) || errors.Is(err, fsm.ErrAmbiguous) {
		return exitUsage
	}
	return exitFailed
}
