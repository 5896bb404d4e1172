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
		Long: `The first line is the verdict: OK; WORKING with what EKCO does or waits for; PAUSED with
who paused EKCO; or NEEDS YOU with the problem that needs a person, and the command that
explains it.
Then: the nodes and things that need attention, with their state and since when, and how
many need none; the open actions with their step and what they wait for, what EKCO will
do next automatically and what prevents that, pauses, safe mode, and the journal's size
and position. If no operator runs, it says so and shows what is in the journal. With a
name it shows only the node or thing of that name. -o wide lists all nodes and things,
with details; nodes that were purged or gone more than a day ago need --all. --component
shows only the things of that component. More than ten things of a kind in the same
state are counted, except in -o wide and --component.

The exit code is 0 whatever the status is. With --check, for monitoring, it is 0 for
OK, 1 for WORKING or PAUSED, and 2 for NEEDS YOU and if the status cannot be read.`,
		Example: `  ekco status
  ekco status worker-2
  ekco status --check
  ekco status --all
  ekco status -o json
  ekco status --component minio
  watch -n 2 ekco status`,
		Args:              statusArgument.allowOne,
		ValidArgsFunction: completeFirst(func(cmd *cobra.Command) []string { return statusNames(a.statusForCompletion(cmd)) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			if component != "" && !slices.Contains(a.words.Components(), component) {
				return usagef("--component is %q: want one of %s%s", component, strings.Join(a.components(), ", "),
					fsm.DidYouMean(fsm.Near(component, slices.Values(a.components()))))
			}
			options := view.StatusOptions{Color: a.useColor(), All: all, Component: component, Words: a.words}
			if len(args) > 0 {
				options.Name = args[0]
			}
			return asCheckError(check, a.withStatus(cmd, func(status api.Status) error {
				if err := requireKnownName(status, options.Name); err != nil {
					return err
				}
				if err := view.Status(a.wrappedStdout(output), status, output, options); err != nil || !check {
					return err
				}
				return checkExit(status.Verdict)
			}))
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "set the exit code: 0 for OK, 1 for WORKING or PAUSED, 2 for NEEDS YOU")
	cmd.Flags().BoolVar(&all, "all", false, "also show nodes that were purged or gone more than a day ago")
	cmd.Flags().StringVar(&component, "component", "", "only this component: "+strings.Join(a.components(), ", "))
	complete(cmd, "component", func(*cobra.Command) []string { return a.components() })
	outputFlag(cmd, &output, "table", view.StatusFormats()...)
	return cmd
}

// components returns the valid values of --component, sorted.
func (a *app) components() []string { return slices.Sorted(slices.Values(a.words.Components())) }
