package main

import (
	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newRetryCommand(a *app) *cobra.Command {
	var command api.ActionCommand
	cmd := &cobra.Command{
		Use:   "retry ACTION",
		Short: "Give a stalled or held action a new budget, at once",
		Long: `Tries a stalled action again, or a held one without waiting for its next check.
"ekco status" shows the open actions and why they wait.`,
		Example:           `  ekco retry purge-worker-2-57-3f9a --reason "the API server is back"`,
		Args:              actionArgument.required,
		ValidArgsFunction: completeFirst(a.actionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			command.Action = args[0]
			return a.tell(cmd, func(backend *connection) (string, error) {
				return view.Clean(command.Action) + " is tried again", backend.Retry(cmd.Context(), command)
			})
		},
	}
	cmd.Flags().StringVar(&command.Reason, "reason", "", "why, for the record")
	return cmd
}
