package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
)

func newStatusCommand(a *app) *cobra.Command {
	var output, component string
	var all, check bool
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show nodes, open actions, and why something waits",
		Long: `The first line is the verdict: OK, WORKING with what EKCO does or waits for, or
NEEDS YOU with what does not go on without a person, and the command that tells more.
Then: every node's state and since when, the open actions and their step and what they
wait for, what EKCO will do next by itself and what keeps it from that, pauses, safe
mode, and the journal's size and position. Where no operator runs, it says so and shows
what the journal says. A name narrows it to the node or thing of that name.
Nodes that were purged or gone more than a day ago are left out of the table,
unless --all is given, and more than ten things of a kind in the same state are counted.
With -o wide, or --component, each is named and more is told of things that are no
nodes; --component leaves out the others.

The exit code is 0 whatever the status is. With --check it is 0 for OK, 1 for WORKING,
and 2 for NEEDS YOU and whenever the status cannot be had: for monitoring.`,
		Example: `  ekco status
  ekco status worker-2
  ekco status --check
  ekco status --all
  ekco status -o json
  ekco status --component minio
  watch -n 2 ekco status`,
		Args:              statusArgument.optional,
		ValidArgsFunction: completeFirst(func(cmd *cobra.Command) []string { return statusNames(a.ask(cmd)) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			if component != "" && !slices.Contains(a.words.Components(), component) {
				return usagef("--component is %q: want one of %s%s", component, strings.Join(a.components(), ", "),
					didYouMean(fsm.Near(component, slices.Values(a.components()))))
			}
			options := view.StatusOptions{Color: a.color(), All: all, Component: component, Words: a.words}
			if len(args) > 0 {
				options.Name = args[0]
			}
			return checked(check, a.withStatus(cmd, func(status api.Status) error {
				if err := knownName(status, options.Name); err != nil {
					return err
				}
				if err := view.Status(a.stdout, status, output, options); err != nil || !check {
					return err
				}
				return checkExit(status.Verdict)
			}))
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "let the exit code tell: 0 for OK, 1 for WORKING, 2 for NEEDS YOU")
	cmd.Flags().BoolVar(&all, "all", false, "also show nodes that were purged or gone more than a day ago")
	cmd.Flags().StringVar(&component, "component", "", "only what is about this component: "+strings.Join(a.components(), ", "))
	complete(cmd, "component", func(*cobra.Command) []string { return a.components() })
	outputFlag(cmd, &output, "table", view.StatusFormats()...)
	return cmd
}

// components returns what --component may be, sorted.
func (a *app) components() []string { return slices.Sorted(slices.Values(a.words.Components())) }
