// Package bolttest has what the tests of bolt and of rescue share. It does not import the store, whose own tests
// import it.
package bolttest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// ChildArgument makes the test binary behave like `ekco journal-child`, which reads a damaged file for the operator.
const ChildArgument = "journal-child"

// Children are other programs that tests run in their own processes, by their first argument.
type Children map[string]func(arguments []string) int

// NewChildren returns those that every test of a damaged file needs.
func NewChildren() Children {
	return Children{ChildArgument: func(arguments []string) int { return rescue.Child(arguments, os.Stdout, os.Stderr) }}
}

// Child is the command line of the child that reads a damaged file.
func Child() []string { return []string{"/proc/self/exe", ChildArgument} }

// Main runs the child that the arguments name, or else the tests, and then cleanup unless it is nil. It fails if
// goroutines are left.
func (c Children) Main(m *testing.M, cleanup func()) {
	if len(os.Args) > 1 {
		if child, ok := c[os.Args[1]]; ok {
			os.Exit(child(os.Args[2:]))
		}
	}
	// Children under the race detector would each sleep a second at their end.
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
