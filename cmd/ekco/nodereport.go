package main

import (
	"context"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/actions"
	actionsreport "github.com/replicatedhq/ekco/actions/nodereport"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	fsmreport "github.com/replicatedhq/ekco/fsm/nodereport"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/nodereport"
)

// nodeReportsOf returns the capability for reports of nodes.
func nodeReportsOf(c cluster) ring.Capability {
	return ring.Capability{
		Fsm: fsmreport.Capability(), Words: fsmreport.Words,
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actionsreport.New(actionsreport.Dependencies{
				Tasks: c.tasks, Objects: c.objects, Image: c.cfg.HostTaskImage, Command: []string{hostTaskCommand, hostTaskReport},
			})}
		},
	}
}

// hostTaskCommand is the hidden command that the pods of host tasks run; hostTaskReport is its subcommand for node
// reports.
const (
	hostTaskCommand = "host-task"
	hostTaskReport  = "node-report"
)

func newHostTaskCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: hostTaskCommand, Hidden: true, Args: noArgument, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(
		&cobra.Command{
			Use: hostTaskReport, Hidden: true, Args: noArgument,
			RunE: func(cmd *cobra.Command, _ []string) error {
				report, err := nodereport.ThisHost(nodereport.Root).ReadWithin(cmd.Context(), actionsreport.Limit*2/3)
				return hosttask.Say(cmd.OutOrStdout(), report, err)
			},
		},
		newHostTaskBalancerCommand(a),
		newHostTaskKubeconfigsCommand(a),
	)
	addCertificateTasks(a, cmd)
	return cmd
}

// untilEnded returns a context that ends when the pod of a host task is being stopped, so that the task can still undo
// its changes.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}

// hostTaskCleanup returns a function that cleans up host tasks while an operator's ring runs.
func hostTaskCleanup(c cluster) func(ctx context.Context, may func() bool, open func(action string) bool) {
	if c.renewalTasks == c.tasks {
		return c.tasks.SweepRegularly
	}
	return func(ctx context.Context, may func() bool, open func(action string) bool) {
		var both sync.WaitGroup
		both.Go(func() { c.tasks.SweepRegularly(ctx, may, open) })
		both.Go(func() { c.renewalTasks.SweepRegularly(ctx, may, open) })
		both.Wait()
	}
}
