package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

type nodeReportFlags struct {
	output, reason string
	follow         bool
}

func newNodeReportCommand(a *app) *cobra.Command {
	var flags nodeReportFlags
	cmd := &cobra.Command{
		Use:   "node-report [NODE…]",
		Short: "Show kernel, clock, free disk, certificates and Ceph volumes of nodes",
		Long: `Has the running operator look at every node, or at those that are named, and shows
what is there: kernel, kubelet and container runtime, how far the clock is ahead of
the API server's, the free disk of /var/lib/ekco and /var/lib/etcd, the certificates
with their expiry, and the mounted volumes of Ceph. It changes nothing on a node, and
of certificates it reads the public part alone.

On each node a pod looks for a few seconds, on ten nodes at a time. What cannot be had
is listed with the reason. A node that is away is not waited for; what the Kubernetes
API says of it is shown all the same. A cordoned node is looked at. The reports are in
the journal, each with the action that is named in it (-o json).

Exit codes: 0 all is there; 1 something is missing, or failed; 2 the command line or
the configuration makes no sense.`,
		Example: `  ekco node-report
  ekco node-report worker-1 worker-2 --follow
  ekco node-report -o wide
  ekco node-report -o json | jq '.nodes[] | select(.clock_ahead != "0s") | .node'`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			left := slices.DeleteFunc(a.presentNodes(cmd), func(name string) bool { return slices.Contains(args, name) })
			return left, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.reportNodes(cmd, flags, args) },
	}
	cmd.Flags().BoolVar(&flags.follow, "follow", false, "show on standard error how each node's report comes about")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for the record")
	outputFlag(cmd, &flags.output, "table", view.NodeReportFormats()...)
	return cmd
}

// reportNodes has the nodes looked at, and shows what came of it.
func (a *app) reportNodes(cmd *cobra.Command, flags nodeReportFlags, names []string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return a.with(ctx, cmd, func(conn *connection) error {
		if !conn.running {
			return errors.New("no operator runs, and node-report needs one that looks at the nodes; start it (kubectl -n kurl scale deploy/ekc-operator --replicas=1)")
		}
		r, err := a.newReporter(ctx, conn, flags, names)
		if err != nil {
			return err
		}
		reports := r.gather(ctx)
		if err := view.WriteNodeReports(a.stdout, reports, flags.output, a.now(), a.color()); err != nil || reports.Complete {
			return err
		}
		return exitError(exitFailed)
	})
}

// newReporter knows what nodes there are to look at.
func (a *app) newReporter(ctx context.Context, conn *connection, flags nodeReportFlags, names []string) (*reporter, error) {
	status, err := conn.Status(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = nodeNames(status, presentNode)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("EKCO has seen no node yet; look at %q", "ekco status")
	}
	r := &reporter{
		app: a, flags: flags, conn: conn, actor: api.LocalActor(), last: status.Journal.LastSeq, began: a.now(),
		byAction: map[string]*reporting{}, sign: &signOfLife{w: a.stderr, terminal: a.stderrTerminal},
	}
	for _, name := range names {
		if !slices.ContainsFunc(r.all, func(other *reporting) bool { return other.Node == name }) {
			r.all = append(r.all, &reporting{NodeReport: view.NodeReport{Node: name}})
		}
	}
	return r, nil
}
