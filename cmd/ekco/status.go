package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newStatusCommand(a *app) *cobra.Command {
	var output, component string
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, open actions, and why something waits",
		Long: `Shows every node's state and since when, the open actions and their step, holds
and refusals with their reasons, pauses, safe mode, and the journal's size and
position. Where no operator runs, it says so and shows what the journal says.
Nodes that were purged or gone more than a day ago are left out of the table,
unless --all is given. With -o wide, or --component, more is told of things that
are no nodes; --component leaves out the others.

The exit code is 0 whatever the status is.`,
		Example: `  ekco status
  ekco status --all
  ekco status -o json
  ekco status --component minio
  watch -n 2 ekco status`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if component != "" && !slices.Contains(a.words.Components(), component) {
				return usagef("--component is %q: want one of %s", component, strings.Join(a.components(), ", "))
			}
			return a.withStatus(cmd, func(status api.Status) error {
				return view.Status(a.stdout, status, output, view.StatusOptions{Color: a.color(), All: all, Component: component, Words: a.words})
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show nodes that were purged or gone more than a day ago")
	cmd.Flags().StringVar(&component, "component", "", "only what is about this component: "+strings.Join(a.components(), ", "))
	complete(cmd, "component", func(*cobra.Command) []string { return a.components() })
	outputFlag(cmd, &output, "table", view.StatusFormats()...)
	return cmd
}

// components returns what --component may be, sorted.
func (a *app) components() []string { return slices.Sorted(slices.Values(a.words.Components())) }
