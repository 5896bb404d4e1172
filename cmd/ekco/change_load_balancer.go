package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// changeTimeout is how long the command waits by default. Installers wait for ten minutes, so it must be shorter.
const changeTimeout = 8 * time.Minute

type changeFlags struct {
	journal.KubeconfigsInput
	timeout time.Duration
	reason  string
}

// stopReason returns the reason if the command must stop waiting.
func (f changeFlags) stopReason(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Sprintf("not done within %s", f.timeout)
	}
	return "interrupted"
}

// continueCommand returns the command with which a person continues.
func (f changeFlags) continueCommand() string {
	command := "ekco change-load-balancer --server=" + f.Server
	if f.Internal {
		command += " --internal"
	}
	for _, name := range f.Exclude {
		command += " --exclude=" + name
	}
	return command
}

func newChangeLoadBalancerCommand(a *app) *cobra.Command {
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "change-load-balancer",
		Short: "Point the kubelets of all nodes to another address of the API server",
		Long: `The running operator sets the API server's address in the kubelet's kubeconfig of every node, and
in admin.conf of primaries, and restarts the kubelets, as "ekco set-kubeconfig-server" does on one
host. The first three nodes are changed one by one, then up to ten at a time, and the primaries
last, one by one. With --internal, HAProxy of every node first gets the present primaries, and a
manifest if it has none.

If a kubelet does not reach the new server, it gets its former server back, and no further node is
changed. A lost node delays no other; the result names it. The operator continues if this command is
interrupted or loses its terminal, and the next operator continues if this one ends. The same
command joins an open change. After an ended change, it changes all nodes again, which is harmless.

The last line has the result: "Result: success", or what is left, why, and the command to continue.

Exit codes: 0 all nodes are done; 1 refused, failed, or not done in time; 2 the command line or the
configuration makes no sense.`,
		Example: `  ekco change-load-balancer --server=https://localhost:6444 --internal --exclude=primary-1
  ekco change-load-balancer --server=https://lb.example.com:6443`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.changeLoadBalancer(cmd, flags, args) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		err = unknownFlagError(cmd, err)
		_, _ = fmt.Fprintln(a.stdout, resultLine(err))
		return err
	})
	cmd.Flags().StringVar(&flags.Server, "server", "", "the API server's `address`, with its scheme (required)")
	cmd.Flags().BoolVar(&flags.Internal, "internal", false, "first update HAProxy of every node")
	cmd.Flags().StringSliceVar(&flags.Exclude, "exclude", nil, "`nodes` whose kubelets keep their server, such as that of the host on which an installer runs")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", changeTimeout, "how long to wait; the operator continues after that")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for the record")
	complete(cmd, "server", noCompletion)
	complete(cmd, "exclude", a.presentNodes)
	return cmd
}

// changeLoadBalancer points all kubelets to another server. Its last line always has the result, because installers
// wait for that line.
func (a *app) changeLoadBalancer(cmd *cobra.Command, flags changeFlags, args []string) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE) // the caller may exit early and read the result later
	err := a.runChange(cmd, flags, args)
	if _, err := fmt.Fprintln(a.stdout, resultLine(err)); err != nil {
		return err
	}
	if _, usage := errors.AsType[usageError](err); usage || errors.Is(err, config.ErrInvalid) {
		return exitError(exitUsage)
	}
	if err != nil {
		return exitError(exitFailed)
	}
	return nil
}

// resultLine returns the last line of output.
func resultLine(err error) string {
	if err == nil {
		return resultMark + " success"
	}
	return resultMark + " " + withoutMark(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// resultMark begins the last line. Installers search the whole output for it, and then for success.
const resultMark = "Result:"

// withoutMark replaces the mark in a text, because an error from a node may contain the mark.
func withoutMark(text string) string {
	return strings.ReplaceAll(view.Clean(text), resultMark, "result:")
}

func (a *app) runChange(cmd *cobra.Command, flags changeFlags, args []string) error {
	if err := noArgument(cmd, args); err != nil {
		return usageError{err}
	}
	switch {
	case flags.Server == "":
		return usagef("give the API server's address: --server=https://localhost:6444; nothing was changed")
	case flags.timeout <= 0:
		return usagef("--timeout is %s: want a duration above zero, like 8m; nothing was changed", flags.timeout)
	}
	if err := kubeconfig.CheckServer(flags.Server); err != nil {
		return usageError{fmt.Errorf("%w; nothing was changed", err)}
	}
	cfg, _, err := a.loadConfig(cmd)
	if err != nil {
		return err
	}
	slices.Sort(flags.Exclude)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	c := &changer{
		app: a, flags: flags, began: a.now(), started: time.Now(), outputs: map[string]json.RawMessage{}, unserved: map[string]string{}, activity: "waiting for an operator",
		dial: func(ctx context.Context) (operator, error) { return a.dialOperator(ctx, cfg) },
	}
	defer c.leave()
	return c.run(ctx)
}

// changer requests one change and follows the change to its end.
type changer struct {
	app   *app
	flags changeFlags
	began time.Time
	// started is the start time, with a reading of the monotonic clock.
	started time.Time
	dial    func(ctx context.Context) (operator, error)
	// operator is the connection to the operator, or nil.
	operator operator
	// requestSent is true if the request may have been sent. before is the number of the last event before the request.
	requestSent bool
	before      uint64
	// action is the id of the change's action, or "" before it is admitted. last is the number of its last handled
	// event.
	action string
	last   uint64
	// facts has the recorded facts of the change; outputs has the recorded outputs by node.
	facts   journal.KubeconfigsFacts
	outputs map[string]json.RawMessage
	// unserved has, by node, the reason why the node's load balancer does not serve.
	unserved map[string]string
	// joined lists the nodes that joined after the change was planned.
	joined []string
	ended  *journal.ActionEnded
	// activity describes the last activity or wait of the change.
	activity string
}

func (c *changer) leave() {
	if c.operator != nil {
		c.operator.Close()
		c.operator = nil
	}
}

// run requests the change and follows it, even if another operator continues the work.
func (c *changer) run(ctx context.Context) error {
	for {
		err := c.requestAndFollow(ctx)
		switch {
		case c.ended != nil:
			return c.remainingWorkError(ctx)
		case ctx.Err() != nil:
			return c.timeoutError(c.flags.stopReason(ctx))
		case err != nil && isAnswer(err) && c.action == "":
			return err
		case err != nil && isAnswer(err):
			return c.timeoutError(err.Error())
		case c.action == "" && time.Since(c.started) > returnTimeout:
			return c.timeoutError(fmt.Sprintf("no operator has answered within %s", returnTimeout))
		}
		c.leave()
		if !errors.Is(err, api.ErrNoOperator) {
			c.print("lost the connection to the operator: %v; waiting until it, or an operator that replaces it, answers", err)
		}
		select {
		case <-time.After(returnRetry):
		case <-ctx.Done():
		}
	}
}

// requestAndFollow requests the change unless it was already requested, and then follows it.
func (c *changer) requestAndFollow(ctx context.Context) (err error) {
	if c.operator, err = c.dial(ctx); err != nil {
		return err
	}
	if c.action == "" {
		if err := c.requestChange(ctx); err != nil {
			return err
		}
	}
	return c.follow(ctx)
}

func (c *changer) requestChange(ctx context.Context) error {
	input, err := json.Marshal(c.flags.KubeconfigsInput)
	if err != nil {
		return err
	}
	if recorded, err := c.isRequestRecorded(ctx); err != nil || recorded {
		return err
	}
	if !c.requestSent {
		status, err := c.operator.Status(ctx)
		if err != nil {
			return err
		}
		c.requestSent, c.before = true, status.Journal.LastSeq
	}
	admitted, err := c.operator.Request(ctx, fsm.Request{
		Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: api.LocalActor(), Reason: c.flags.reason, Input: input,
	})
	if err != nil {
		return err
	}
	c.action, c.activity = admitted.Action, "planning"
	if admitted.Resumed {
		c.print("joining %s, %s", c.action, admitted.Message)
		return nil
	}
	c.print("%s: pointing the kubelets to %s", c.action, c.flags.Server)
	return nil
}

// isRequestRecorded reports whether the journal has the request that this command sent over a connection that was lost.
// If so, a second request would restart every kubelet again.
func (c *changer) isRequestRecorded(ctx context.Context) (recorded bool, err error) {
	if !c.requestSent {
		return false, nil
	}
	query := journal.Query{Name: journal.Kubeconfigs.Name, Types: []journal.Type{journal.TypeActionRequested}, After: c.before}
	for event, err := range c.operator.Events(ctx, query, false) {
		if err != nil {
			return false, err
		}
		requested, is := event.Decoded().Body.(*journal.ActionRequested)
		if !is || event.Actor != api.LocalActor() {
			continue
		}
		if input, err := journal.InputOf[journal.KubeconfigsInput](*requested); err == nil && input.Same(c.flags.KubeconfigsInput) {
			c.action, c.activity = event.Action, "planning"
			c.print("%s: pointing the kubelets to %s", c.action, c.flags.Server)
		}
	}
	return c.action != "", nil
}

func (c *changer) elapsed() string {
	return words.Span(c.app.now().Sub(c.began).Round(100 * time.Millisecond))
}

func (c *changer) printEvent(event journal.Decoded) {
	c.print("%8s  %s", c.elapsed(), strings.TrimPrefix(view.Sentence(c.app.words, event), view.Clean(c.action)+": "))
}

// print prints a line. It ignores errors, because the change must continue without a reader.
func (c *changer) print(format string, args ...any) {
	_, _ = fmt.Fprintln(c.app.stdout, withoutMark(fmt.Sprintf(format, args...)))
}
