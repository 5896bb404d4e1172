package main

import (
	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newCancelCommand(a *app) *cobra.Command {
	var command api.ActionCommand
	cmd := &cobra.Command{
		Use:   "cancel ACTION",
		Short: "Stop an action before its point of no return",
		Long: `Asks an action to stop. A step that is under way is finished first, and what can
be taken back is: the purge of a node that answers puts its storage entry and its
OSDs back. An action past its point of no return goes only forward and refuses.`,
		Example:           `  ekco cancel purge-worker-2-57-3f9a --reason "the node is being repaired"`,
		Args:              actionArgument.required,
		ValidArgsFunction: completeFirst(a.actionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			command.Action = args[0]
			return a.tell(cmd, func(backend *connection) (string, error) {
				return view.Clean(command.Action) + " is asked to stop", backend.Cancel(cmd.Context(), command)
			})
		},
	}
	cmd.Flags().StringVar(&command.Reason, "reason", "", "why, for the record")
	return cmd
}
