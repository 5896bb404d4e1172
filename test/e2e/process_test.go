package e2e

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// patience is how long anything may take that is going to happen. It is spent
// only by a test that fails, so a busy machine gets plenty.
const patience = 3 * time.Minute

// process is a command that a test drives. It ends with the test.
type process struct {
	*child.Process
	output output
}

// output is what a process wrote so far.
type output struct{ child.Output }

// start starts a command whose output is shown when the test fails.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, name, args...)
}

func startWith(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := child.StartWith(t, env, name, args...)
	return &process{Process: p, output: output{p.Output}}
}

func (p *process) kill()                                  { p.Kill() }
func (p *process) stop(limit time.Duration) time.Duration { return p.Stop(limit) }
func (p *process) wait(limit time.Duration) int           { return p.Wait(limit) }
func (o output) tail(n int) string                        { return o.Tail(n) }

// eventually waits until the condition holds, asking ten times a second.
func eventually(t *testing.T, limit time.Duration, what string, condition func() (bool, string)) {
	t.Helper()
	await.Until(t, limit, what, condition)
}
