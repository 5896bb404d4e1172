package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

func newPurgeNodeCommand(a *app) *cobra.Command {
	var flags purgeFlags
	cmd := &cobra.Command{
		Use:   "purge-node NAME",
		Short: "Remove a node from the cluster for good",
		Long: `Removes a node from the cluster for good, and shows each step. The running operator does
the work; it continues if this command is interrupted or loses its terminal. If no operator
runs, this command does the work itself. It refuses if the cluster shows that an operator
with another journal may run. An interrupted purge of the node is resumed.

EKCO refuses to purge a ready node if too few other nodes of its role would be left. On a
terminal the command says what the purge costs, and asks. Without a terminal it continues
and records the warnings. Without a terminal and without --yes, the purge of a ready node
begins after ten seconds; until then "ekco cancel NAME" stops it before anything is changed.

EKCO also purges a node that it never saw, because its Node was deleted before, if Rook,
Ceph, etcd or kubeadm's ClusterStatus still have a part of it: the command shows what it
found, and asks. If they have no part of it, that is an error.

While Ceph does not answer, the steps that need Ceph wait until it does, however long that
is. EKCO does the other steps, and the command ends with a warning.

On a node that answers, EKCO destroys nothing before its OSDs have stopped. Until then
"ekco cancel" restores its storage entry and its OSDs.

Exit codes: 0 the node is purged, or only waits for Ceph; 1 refused, failed or not finished; 2 the
command line or the configuration makes no sense.`,
		Example: `  ekco purge-node worker-2 --dry-run
  ekco purge-node worker-2
  ekco purge-node worker-2 --yes --no-wait`,
		Args:              nodeArgument.requireOne,
		ValidArgsFunction: completeFirst(a.presentNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.node, flags.kubeconfig = args[0], cmd.Flags().Changed("kubeconfig")
			return a.purgeNode(cmd, flags)
		},
	}
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "print the plan, the captured facts and each preflight's result, and change nothing")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&flags.force, "force", false, "ignore preflights that can be forced, such as the minimum of ready nodes")
	cmd.Flags().BoolVar(&flags.noWait, "no-wait", false, "return as soon as the purge is recorded; needs a running operator")
	cmd.Flags().BoolVar(&flags.withoutOperator, "without-operator", false, "do the work although an operator with another journal may run; only after its machine is lost for good")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for the record")
	config.RegisterPurgeNodeFlags(cmd.Flags())
	config.RegisterFlags(cmd.Flags(), "kubeconfig")
	outputFlag(cmd, &flags.output, "text", "text", "json", "yaml")
	return cmd
}

type purgeFlags struct {
	node, reason, output       string
	dryRun, yes, force, noWait bool
	withoutOperator            bool
	// kubeconfig is set if --kubeconfig was given.
	kubeconfig bool
}

// purger runs one purge from the first question to the end.
type purger struct {
	app     *app
	flags   purgeFlags
	backend api.Backend
	// doesWorkItself is true if this process does the work.
	doesWorkItself bool
	// ended is closed if the ring of this process ends early.
	ended <-chan struct{}
	// workerIsCommand is true if another command does the work.
	workerIsCommand bool
	// redial reconnects to the operator after a lost connection.
	redial func(ctx context.Context) (operator, error)
	// recordedAs reads the state of an action from the file; see [app.openRecorded].
	recordedAs func(ctx context.Context, action string) (file operator, over bool, err error)
	// answered has the shown warnings with their answers. They are kept when another process continues the work, so
	// that no question is repeated.
	answered []journal.ActionWarned
	// confirmed is set after the user answered a question with yes.
	confirmed bool
	// subjectUID is the UID of the node that was shown first. The command purges no other node, because a new node may
	// have joined with the same name.
	subjectUID string
	// prompt is standard error. It buffers other output during a question.
	prompt *promptOutput
	// printed and warned shorten repeated text on standard output and on standard error. They are separate, because a
	// user may read only one of them.
	printed, warned view.Once
}

// purgeNode finds the process that does the work, and follows the purge in it.
func (a *app) purgeNode(cmd *cobra.Command, flags purgeFlags) (err error) {
	if flags.output != "text" && !flags.dryRun {
		return usagef("-o %s needs --dry-run; for the events of a purge see: ekco history --action ACTION --follow -o json", flags.output)
	}
	prompt := &promptOutput{w: a.stderr}
	own := *a
	own.stderr = prompt
	a = &own
	cfg, log, err := a.loadConfig(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p := &purger{
		app: a, flags: flags, prompt: prompt,
		redial: func(ctx context.Context) (operator, error) { return a.dialOperator(ctx, cfg) },
		recordedAs: func(ctx context.Context, action string) (operator, bool, error) {
			return a.openRecorded(ctx, cfg, action)
		},
	}
	for range maxWorkers {
		if err = p.runOnce(ctx, cfg, log); !errors.Is(err, errWorkerLeft) {
			return err
		}
		p.warn("%v; looking for the process that continues", err)
	}
	return err
}

// maxWorkers is the number of processes that may end early before the command gives up.
const maxWorkers = 5

// runOnce follows the purge in the process that does the work at present.
func (p *purger) runOnce(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	release, err := p.connectOrBecomeWorker(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	p.warnOfIgnored(ctx, cfg)
	return p.run(ctx, p.flags.request(cfg, !p.app.askable && !p.flags.yes))
}

// request returns the request. It has only the settings that the user gave; for the others, the operator's apply.
// unasked is true if no person could confirm the request.
func (f purgeFlags) request(cfg config.Config, unasked bool) fsm.Request {
	request := fsmnode.Request{
		Kind: journal.ActionPurgeNode, Node: f.node, Reason: f.reason, Force: f.force, Actor: api.LocalActor(),
	}
	request.Unasked = unasked
	if slices.Contains(cfg.Explicit, "min_ready_master_nodes") {
		request.MinReadyPrimaries = &cfg.MinReadyMasterNodes
	}
	if slices.Contains(cfg.Explicit, "min_ready_worker_nodes") {
		request.MinReadyWorkers = &cfg.MinReadyWorkerNodes
	}
	if slices.Contains(cfg.Explicit, "maintain_rook_storage_nodes") {
		request.MaintainRook = &cfg.MaintainRookStorageNodes
	}
	return request.Asked()
}

// run shows the plan, asks, requests the purge and follows it.
func (p *purger) run(ctx context.Context, request fsm.Request) error {
	request.Costs = p.flags.dryRun || p.app.askable && !p.flags.yes && !p.flags.force
	explained, err := withNotice(ctx, p, "the preflights", func(ctx context.Context) (api.Explanation, error) {
		return p.backend.Explain(ctx, request)
	})
	if errors.Is(err, fsm.ErrRefused) && !p.flags.dryRun {
		err = p.recordRefusal(ctx, request)
	}
	if err != nil {
		return interrupted(ctx, p.workerLeftError(err), "nothing was changed")
	}
	if p.flags.dryRun {
		if trouble := journalTrouble(ctx, p.backend); trouble != "" {
			p.warn("warning: %s. What has happened since is not considered.", trouble)
		}
		if p.flags.output != "text" {
			return view.Value(p.app.stdout, explained, p.flags.output)
		}
		command := "ekco purge-node " + p.flags.node
		if p.flags.force {
			command += " --force"
		}
		return view.Explanation(p.app.wrappedStdout(p.flags.output), explained, command, p.app.useColor())
	}
	if explained.AlreadyDone {
		p.print("%s", explained.Message)
		return nil
	}
	if err := p.askAboutWarnings(ctx, explained); err != nil {
		return err
	}
	request.Warned, request.Costs = p.answered, false
	if p.subjectUID == "" {
		p.subjectUID = explained.Subject.UID
	}
	request.UID = p.subjectUID
	admitted, err := withNotice(ctx, p, "the purge to be recorded", func(ctx context.Context) (api.Admission, error) {
		return p.backend.Request(ctx, request)
	})
	switch {
	case err != nil:
		return interrupted(ctx, p.workerLeftError(err), "the purge may have been recorded; see: ekco status")
	case admitted.AlreadyDone:
		p.print("%s", admitted.Message)
		return nil
	case admitted.Resumed:
		p.print("resuming %s, %s", admitted.Action, admitted.Message)
	default:
		p.print("%s: purging node %s", admitted.Action, p.flags.node)
		if _, waits := explained.Plan.Step(purge.WaitForCancel); waits {
			p.print("node %s is ready, and no person confirmed the purge: it begins after %s; cancel it with: ekco cancel %s", p.flags.node, purge.TimeToCancel, p.flags.node)
		}
	}
	if p.flags.noWait {
		p.print("the operator does the work; follow it with: ekco history --action %s --follow", admitted.Action)
		return nil
	}
	return p.follow(ctx, admitted)
}

// workerLeftError returns errWorkerLeft if the command that does the work ended during the request. It returns any
// answer of that command unchanged.
func (p *purger) workerLeftError(err error) error {
	if !isAnswer(err) && p.workerIsCommand {
		return fmt.Errorf("%w: %w", errWorkerLeft, err)
	}
	return err
}

// recordRefusal records the refusal in the process that does the work, and returns the error.
func (p *purger) recordRefusal(ctx context.Context, request fsm.Request) error {
	request.Refused = true
	_, err := withNotice(ctx, p, "the refusal to be recorded", func(ctx context.Context) (api.Admission, error) {
		return p.backend.Request(ctx, request)
	})
	return err
}

// askAboutWarnings prints the warnings and objections of the preflights. It asks only on a terminal, about unanswered
// warnings, and once about a new purge: a wrong name must not be fatal.
func (p *purger) askAboutWarnings(ctx context.Context, explained api.Explanation) error {
	var warned []journal.ActionWarned
	refused := false
	for _, check := range explained.Checks {
		switch check.Verdict {
		case actions.VerdictWarn:
			p.warn("warning: %s", words.Held(check.Preflight, check.Reason))
			same := func(w journal.ActionWarned) bool { return w.Preflight == check.Preflight && w.Key == check.Key }
			if !slices.ContainsFunc(p.answered, same) {
				warned = append(warned, journal.ActionWarned{Preflight: check.Preflight, Key: check.Key, Warning: check.Reason})
			}
		case actions.VerdictHold:
			p.warn("note: the purge will wait: %s", words.Held(check.Preflight, check.Reason))
		case actions.VerdictAbandon: // the command still requests the purge, so that the request is recorded
			p.warn("note: the purge will be refused: %s", words.Held(check.Preflight, check.Reason))
			refused = true
		}
	}
	begins := p.app.askable && !p.confirmed && explained.Resumes == ""
	if len(warned) == 0 && !begins || refused {
		return nil
	}
	answer := "no terminal"
	switch {
	case p.flags.yes:
		answer = "--yes"
	case p.flags.force:
		answer = "--force"
	case p.app.askable:
		if err := p.refuseQuestion(ctx); err != nil {
			return err
		}
		anyway := ""
		if len(warned) > 0 {
			anyway = " anyway"
		}
		if err := p.confirm(ctx, explained.Costs, anyway); err != nil {
			return err
		}
		answer, p.confirmed = "yes", true
	}
	for i := range warned {
		warned[i].Answer = answer
	}
	p.answered = append(p.answered, warned...)
	return nil
}

// confirm says what the purge costs and asks the user. It returns an error unless the answer is yes.
func (p *purger) confirm(ctx context.Context, costs []string, anyway string) error {
	for _, cost := range costs {
		p.warn("cost: %s", cost)
	}
	p.warn("This removes node %s for good; it cannot be undone.", p.flags.node)
	answer, err := p.prompt.ask(ctx, p.app.stdin, fmt.Sprintf("Purge node %s%s? [y/N] ", view.Clean(p.flags.node), anyway))
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx, ctx.Err(), "nothing was changed")
	case err == nil && (answer == "y" || answer == "yes"):
		return nil
	}
	return fmt.Errorf("node %s is not purged: the question was not answered with yes; nothing was changed", p.flags.node)
}

// print prints a line. It ignores errors, because a purge must continue without a reader.
func (p *purger) print(format string, args ...any) {
	_, _ = fmt.Fprintln(p.app.stdout, p.printed.Shorten(view.Clean(fmt.Sprintf(format, args...))))
}

func (p *purger) warn(format string, args ...any) {
	_, _ = fmt.Fprintln(p.app.stderr, p.warned.Shorten(view.Clean(fmt.Sprintf(format, args...))))
}
