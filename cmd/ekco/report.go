package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
)

// reportWindow is the default period of a report.
const reportWindow = 7 * 24 * time.Hour

func newReportCommand(a *app) *cobra.Command {
	var node, since string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write a page about what happened, for a browser",
		Long: `Writes one page of HTML to standard output: the verdict, the states of each node and
component over time, and what EKCO did, with steps, waits and causes. The page loads
nothing from elsewhere, so it can be mailed or archived.

It covers the last 7 days, unless --since is given. If no operator runs, it shows what
is in the journal.`,
		Example: `  ekco report > report.html
  ekco report --node worker-2 --since 30d > worker-2.html`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.stdoutTerminal {
				return usagef("the report is a page for a browser: send it to a file, as in: ekco report > report.html")
			}
			options := view.ReportOptions{Until: a.now(), From: a.now().Add(-reportWindow), Node: node, Words: a.words}
			if since != "" {
				from, err := parseMoment("--since", since, a.now(), time.UTC)
				if err != nil {
					return err
				}
				options.From = from
			}
			return a.withWarned(cmd.Context(), cmd, func(backend *connection) error { return a.report(cmd, backend, options) })
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "only what concerns this node")
	cmd.Flags().StringVar(&since, "since", "", "from this time on, like 24h, 30d or 2026-11-21, or \"all\"; default 7d")
	complete(cmd, "node", a.nodeNames)
	return cmd
}

func (a *app) report(cmd *cobra.Command, backend *connection, options view.ReportOptions) error {
	ctx := cmd.Context()
	status, err := backend.Status(ctx)
	if err != nil {
		return err
	}
	api.Judge(&status, a.words.Verb)
	if err := requireKnownName(status, options.Node); err != nil {
		return err
	}
	if options.From.IsZero() {
		options.From = status.Journal.FirstTime
	}
	options.Lookup, options.Origin = lookup(ctx, backend), firstEventOf(ctx, backend)
	if options.Lost, err = lostPeriods(ctx, backend, options); err != nil {
		return err
	}
	return view.Report(a.stdout, status, backend.Events(ctx, journal.Query{Node: options.Node, Since: options.From}, false), options)
}

// lostPeriods returns the periods of which the journal lost events. A damaged journal usually lacks its newest events,
// too; that counts as one loss.
func lostPeriods(ctx context.Context, backend api.Backend, options view.ReportOptions) (lost []view.Gap, err error) {
	found, err := losses(ctx, backend, options.From, options.Lookup)
	for _, loss := range found {
		gap := view.Gap{From: loss.From, Until: loss.At}
		if i := len(lost) - 1; i >= 0 && lost[i].From.Equal(gap.From) {
			lost[i] = gap
			continue
		}
		lost = append(lost, gap)
	}
	return lost, err
}
