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
		Long: `Reads facts of every node, or of the given ones: kernel, kubelet and container
runtime, how far the clock is ahead of the API server's, the free disk of /var/lib/ekco
and /var/lib/etcd, the certificates with their expiry, and the mounted volumes of Ceph.
It changes nothing on a node, and of certificates it reads only the public part.

The operator runs a pod on each node for a few seconds, on ten nodes at a time, also on
cordoned ones. It does not wait for a node that does not answer, but shows what the
Kubernetes API knows of it. Missing facts are listed with the reason. The reports are in
the journal, each with its action (-o json).

Exit codes: 0 the reports are complete; 1 something is missing, or failed; 2 the command line or
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
	cmd.Flags().BoolVar(&flags.follow, "follow", false, "show the events of each node's report on standard error")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for the record")
	outputFlag(cmd, &flags.output, "table", view.NodeReportFormats()...)
	return cmd
}

// reportNodes requests the reports, waits for them, and prints them.
func (a *app) reportNodes(cmd *cobra.Command, flags nodeReportFlags, names []string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return a.withConnection(ctx, cmd, func(conn *connection) error {
		if !conn.running {
			return errors.New("no operator runs, and node-report needs one; start it (kubectl -n kurl scale deploy/ekc-operator --replicas=1)")
		}
		r, err := a.newReporter(ctx, conn, flags, names)
		if err != nil {
			return err
		}
		reports := r.collectReports(ctx)
		if err := view.WriteNodeReports(a.stdout, reports, flags.output, a.now(), a.useColor()); err != nil || reports.Complete {
			return err
		}
		return exitError(exitFailed)
	})
}

// newReporter selects the nodes, and returns a reporter for them.
func (a *app) newReporter(ctx context.Context, conn *connection, flags nodeReportFlags, names []string) (*reporter, error) {
	status, err := conn.Status(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = nodeNames(status, presentNode)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("EKCO has seen no node yet; see: %s", "ekco status")
	}
	r := &reporter{
		app: a, flags: flags, conn: conn, actor: api.LocalActor(), last: status.Journal.LastSeq, began: a.now(),
		byAction: map[string]*nodeReportState{}, sign: &statusLine{w: a.stderr, terminal: a.stderrTerminal},
	}
	for _, name := range names {
		if !slices.ContainsFunc(r.all, func(other *nodeReportState) bool { return other.Node == name }) {
			r.all = append(r.all, &nodeReportState{NodeReport: view.NodeReport{Node: name}})
		}
	}
	return r, nil
}
