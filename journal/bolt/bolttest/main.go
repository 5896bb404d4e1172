// Package bolttest has helpers for the tests of packages bolt and rescue. It does not import package bolt, because the
// tests in package bolt import it.
package bolttest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// ChildArgument makes the test binary behave like `ekco journal-child`, which reads a damaged file for the operator.
const ChildArgument = "journal-child"

// Children are functions that the test binary runs instead of the tests when a test starts it as another process. The
// key is the first argument.
type Children map[string]func(arguments []string) int

// NewChildren returns the children that a test of a damaged file needs.
func NewChildren() Children {
	return Children{ChildArgument: func(arguments []string) int { return rescue.Child(arguments, os.Stdout, os.Stderr) }}
}

// Child returns the command line of the child that reads a damaged file.
func Child() []string { return []string{"/proc/self/exe", ChildArgument} }

// Main runs the child that the first argument names. Without such an argument it runs the tests, and then cleanup
// unless it is nil. It fails if goroutines are left.
func (c Children) Main(m *testing.M, cleanup func()) {
	if len(os.Args) > 1 {
		if child, ok := c[os.Args[1]]; ok {
			os.Exit(child(os.Args[2:]))
		}
	}
	// Without this, a child under the race detector would sleep for a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	if cleanup == nil {
		goleak.VerifyTestMain(m)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cleanup()
		os.Exit(code)
	}))
}
