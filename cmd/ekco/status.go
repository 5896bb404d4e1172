package main

import (
	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newStatusCommand(a *app) *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, open actions, and why something waits",
		Long: `Shows every node's state and since when, the open actions and their step, holds
and refusals with their reasons, pauses, safe mode, and the journal's size and
position. Where no operator runs, it says so and shows what the journal says.
Nodes that were purged or gone more than a day ago are left out of the table,
unless --all is given.

The exit code is 0 whatever the status is.`,
		Example: `  ekco status
  ekco status --all
  ekco status -o json
  watch -n 2 ekco status`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStatus(cmd, func(status api.Status) error {
				return view.Status(a.stdout, status, output, view.StatusOptions{Color: a.color(), All: all, Words: a.words})
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show nodes that were purged or gone more than a day ago")
	outputFlag(cmd, &output, "table", view.StatusFormats()...)
	return cmd
}
