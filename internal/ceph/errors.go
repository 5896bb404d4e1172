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

// Exit codes of timeout(1) and of what starts programs.
const (
	exitTimeout       = 124
	exitNotExecutable = 126
	exitNoProgram     = 127
	exitTerminated    = 128 + 15
	exitKilled        = 128 + 9
)

// CommandError is the refusal of a ceph command that ran to its end.
type CommandError struct {
	// Command is the command without options, such as "ceph osd crush rm node1".
	Command  string
	ExitCode int
	// Message is what ceph wrote about it.
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

// silent reports whether an exit code says that no monitor or mgr answered,
// rather than that one refused.
func silent(exitCode int, message string) bool {
	switch exitCode {
	case exitInterrupted, exitTimedOut, exitTimeout, exitTerminated, exitKilled:
		return true
	case exitGeneral:
		// Also the number of EPERM, which ceph names.
		return !strings.Contains(message, "EPERM")
	}
	return false
}

// longestMessage is how much of ceph's own words goes into an error, in bytes.
const longestMessage = 500

// lastWords returns the end of what a program wrote, in one line.
func lastWords(output []byte) string {
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(output), "?")), " ")
	if len(words) > longestMessage {
		words = "…" + strings.ToValidUTF8(words[len(words)-longestMessage:], "")
	}
	return words
}
