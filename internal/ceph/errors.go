package ceph

import (
	"fmt"
	"strings"
)

// Exit codes of ceph are error numbers of Linux.
const (
	exitGeneral     = 1
	exitNoEntry     = 2
	exitInterrupted = 4
	exitAgain       = 11
	exitBusy        = 16
	exitNotEmpty    = 39
	exitTimedOut    = 110
)

// Exit codes of timeout(1), and of shells and container runtimes.
const (
	exitTimeout       = 124
	exitNotExecutable = 126
	exitNoProgram     = 127
	exitTerminated    = 128 + 15
	exitKilled        = 128 + 9
)

// CommandError is the error of a ceph command that ran and failed.
type CommandError struct {
	// Command is the command without options, such as "ceph osd crush rm node1".
	Command  string
	ExitCode int
	// Message is the end of ceph's stderr.
	Message string
}

// Error implements error.
func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.Command, e.ExitCode, e.Message)
}

// Unwrap returns the sentinel error for the exit code, or nil.
func (e *CommandError) Unwrap() error {
	switch e.ExitCode {
	case exitNoEntry:
		return ErrNotFound
	case exitAgain:
		return ErrAgain
	case exitBusy:
		return ErrBusy
	case exitNotEmpty:
		return ErrHostNotEmpty
	}
	return nil
}

// isUnanswered reports whether an exit code means that no monitor or mgr answered. Otherwise one of them refused the
// command.
func isUnanswered(exitCode int, message string) bool {
	switch exitCode {
	case exitInterrupted, exitTimedOut, exitTimeout, exitTerminated, exitKilled:
		return true
	case exitGeneral:
		// Exit code 1 is also EPERM. Then ceph writes "EPERM".
		return !strings.Contains(message, "EPERM")
	}
	return false
}

// maxMessage limits the part of ceph's output in an error, in bytes.
const maxMessage = 500

// outputTail returns the end of a program's output, in one line.
func outputTail(output []byte) string {
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(output), "?")), " ")
	if len(words) > maxMessage {
		words = "…" + strings.ToValidUTF8(words[len(words)-maxMessage:], "")
	}
	return words
}
