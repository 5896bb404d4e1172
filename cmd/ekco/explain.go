package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newExplainCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME|ACTION",
		Short: "Show why a thing is as it is, and what keeps EKCO from acting on it",
		Long: `Shows the state of a thing and since when, the event that tells why, the open
actions about it with what they wait for, the rules that keep EKCO from others, what
somebody else keeps undoing, and how the last actions ended. An open action's id stands
for the thing that it is about. Where no operator runs, it shows what the journal says.`,
		Example: `  ekco explain node/worker-2
  ekco explain purge-worker-2-57-3f9a`,
		Args: thingOrActionArgument.required,
		ValidArgsFunction: completeFirst(func(cmd *cobra.Command) []string {
			status := a.ask(cmd)
			names := thingNames(status)
			for _, action := range status.Actions {
				names = append(names, action.ID)
			}
			return names
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := api.ThingRequest{Action: args[0]}
			if strings.Contains(args[0], "/") {
				var err error
				if request, err = readThing(cmd, args[0]); err != nil {
					return err
				}
			}
			return a.explain(cmd, request, output)
		},
	}
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}

func (a *app) explain(cmd *cobra.Command, request api.ThingRequest, output string) error {
	return a.withWarned(cmd.Context(), cmd, func(backend *connection) error {
		things, err := backend.ExplainThing(cmd.Context(), request)
		if err != nil {
			return err
		}
		if output != "text" {
			return view.Value(a.stdout, things, output)
		}
		return view.Things(a.stdout, things, view.Options{
			Color: a.color(), Lookup: lookup(cmd.Context(), backend), Words: a.words,
		})
	})
}
