package ceph

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
)

// mgrHint is the end of an error about a command that the mgr answers.
const mgrHint = "the mgr answers this command; check that a rook-ceph-mgr pod runs (kubectl -n rook-ceph get pods -l app=rook-ceph-mgr)"

// monHint is the end of an error about a command that the monitors answer.
const monHint = "check that most of the rook-ceph-mon pods run (kubectl -n rook-ceph get pods -l app=rook-ceph-mon)"

// command is one ceph command.
type command struct {
	args []string
	// mgr is set when the monitors hand the command to the mgr.
	mgr bool
	// changes is set for commands that change something.
	changes bool
	// uncached is set for a query that must not reuse an earlier answer.
	uncached bool
}

func (c command) String() string { return "ceph " + strings.Join(c.args, " ") }

// kind returns the command without names and ids.
func (c command) kind() string {
	words := 2
	if len(c.args) > 1 && c.args[1] == "crush" {
		words = 3
	}
	return strings.Join(c.args[:min(words, len(c.args))], " ")
}

// run runs a ceph command to its end, or until its timeout. Callers of the same query share its answer, and
// queries of the same moment share a process.
func (c *Client) run(ctx context.Context, command command) (answer []byte, err error) {
	switch {
	case command.changes && c.options.ReadOnly:
		return nil, fmt.Errorf("%s: %w", command, ErrReadOnly)
	case command.changes:
		c.reads.dropAnswers()
		defer c.reads.dropAnswers()
		began := time.Now()
		answer, err = c.runAlone(ctx, command, began.Add(c.limit()))
		c.report(ctx, command, began, err)
		return answer, err
	}
	return c.reads.ask(ctx, command, c.sendQueries)
}

// report reports a command to OnCommand, unless it failed after its caller had stopped waiting.
func (c *Client) report(ctx context.Context, command command, began time.Time, err error) {
	if err == nil || ctx.Err() == nil {
		c.options.OnCommand(command.kind(), time.Since(began), err)
	}
}

// runAlone runs a command in a separate process.
func (c *Client) runAlone(parent context.Context, command command, until time.Time) (answer []byte, err error) {
	ctx, cancel := context.WithDeadline(parent, until)
	defer cancel()
	result, err := c.exec(ctx, command, true)
	if err == nil && result.lacksTimeout() {
		// The command did not start, so it can be repeated without timeout(1). Then only the exec's timeout ends it.
		result, err = c.exec(ctx, command, false)
	}
	switch {
	case err == nil:
		return c.checkResult(command, result)
	case parent.Err() != nil:
		return nil, fmt.Errorf("%s: %w", command, context.Cause(parent))
	case ctx.Err() != nil:
		return nil, c.noAnswer(command, "no answer within "+c.limit().String())
	}
	return nil, fmt.Errorf("%s: %w: %w", command, ErrUnavailable, err)
}

// checkResult returns stdout, or the error that the exit code means.
func (c *Client) checkResult(command command, result result) (answer []byte, err error) {
	message := outputTail(result.stderr)
	switch {
	case result.exitCode == 0:
		return result.stdout, nil
	case result.exitCode == exitNoProgram, result.exitCode == exitNotExecutable:
		return nil, fmt.Errorf("%s: %w: cannot run the ceph program there: %s", command, ErrUnavailable, message)
	case isUnanswered(result.exitCode, message):
		return nil, c.noAnswer(command, fmt.Sprintf("exit code %d: %s", result.exitCode, message))
	}
	return nil, &CommandError{Command: command.String(), ExitCode: result.exitCode, Message: message}
}

// limit is the timeout of a command including its exec.
func (c *Client) limit() time.Duration { return c.options.Timeout + c.options.Grace }

type result struct {
	stdout, stderr []byte
	exitCode       int
}

// lacksTimeout reports whether the container has no timeout(1). If only ceph is missing, timeout(1) itself writes
// the error message.
func (r result) lacksTimeout() bool {
	if r.exitCode != exitNoProgram && r.exitCode != exitNotExecutable {
		return false
	}
	return !strings.Contains(string(r.stderr), "timeout: failed to run command")
}

// exec runs the command once. With guard, timeout(1) ends it inside the pod before the context ends the exec.
func (c *Client) exec(ctx context.Context, command command, guard bool) (r result, err error) {
	if !command.changes {
		ctx = kube.ReadsOnly(ctx)
	}
	r.stdout, r.stderr, r.exitCode, err = c.runner.Run(ctx, c.argv(command, guard))
	if err != nil && guard && strings.Contains(err.Error(), notFoundInPod) {
		return result{exitCode: exitNoProgram}, nil
	}
	return r, err
}

// notFoundInPod is how container runtimes report a missing program if they return an error instead of an exit
// code.
const notFoundInPod = "executable file not found"

func (c *Client) argv(command command, guard bool) []string {
	var argv []string
	if guard {
		argv = c.timeoutArgv(c.options.Timeout)
	}
	return append(append(argv, c.program()...), command.args...)
}

// interactiveArgv returns the arguments of a ceph process that reads queries from stdin. Without PYTHONUNBUFFERED
// the process would buffer its answers.
func (c *Client) interactiveArgv() []string {
	argv := append([]string{"env", "PYTHONUNBUFFERED=1"}, c.timeoutArgv(c.lifetime())...)
	return append(argv, c.program()...)
}

func (c *Client) timeoutArgv(limit time.Duration) []string {
	return []string{"timeout", "-k", seconds(c.options.Grace / 2), seconds(limit)}
}

func (c *Client) program() []string {
	return append(slices.Clone(c.options.Program), "--connect-timeout", seconds(c.options.ConnectTimeout), "-f", "json")
}

// seconds rounds up, because 0 means "no limit" for these programs.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}

func (c *Client) noAnswer(command command, why string) error {
	hint := monHint
	if command.mgr {
		hint = mgrHint
	}
	if command.changes {
		why += "; the change may have happened"
	}
	return fmt.Errorf("%s: %w: %s; %s", command, ErrUnavailable, why, hint)
}
