package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
)

func newRetryCommand(a *app) *cobra.Command {
	var command api.ActionCommand
	cmd := &cobra.Command{
		Use:   "retry ACTION|NAME",
		Short: "Try a stalled or held action again, at once",
		Long: `Tries a stalled action again, or a held one without waiting for its next check.
"ekco status" shows the open actions and why they wait. The name of a node or thing
stands for the one open action about it. One that runs is left as it is.

With --force it also goes past what holds the action now, where the reason in
"ekco status" offers that: it says what may be lost. Any other hold stays, and so
does what holds the action later.`,
		Example: `  ekco retry worker-2
  ekco retry purge-worker-2-57-3f9a --reason "the API server is back"
  ekco retry migrate-minio-8-1b2c --force --reason "the volumes can grow"`,
		Args:              actionArgument.required,
		ValidArgsFunction: completeFirst(a.actionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), cmd, func(backend *connection) error {
				action, err := openAction(cmd.Context(), backend, "retry", args[0])
				if err != nil {
					return err
				}
				if runs := running(action); runs != "" && backend.running {
					_, err := fmt.Fprintln(a.stdout, view.Clean(a.named(action)+runs+"; nothing was changed"))
					return err
				}
				command.Action = action.ID
				if err := backend.Retry(cmd.Context(), command); err != nil {
					return err
				}
				return a.taken(backend, view.Clean(a.named(action))+" is tried again"+forced(command.Force))
			})
		},
	}
	cmd.Flags().StringVar(&command.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&command.Force, "force", false, "also go past what holds the action now, where its reason offers that")
	return cmd
}

// running says of an action that there is nothing to try again; "" if there is.
func running(action journal.ActionRecord) string {
	if len(action.Holds) > 0 || action.Stalled != nil || action.Cancelling != nil || action.Unreadable != "" {
		return ""
	}
	for _, step := range action.Steps {
		if !step.NextTry.IsZero() {
			return ""
		}
	}
	steps := underWay(action)
	if len(steps) == 0 {
		return ""
	}
	return " is running: " + strings.Join(steps, ", ")
}

// forced says that a retry was forced.
func forced(force bool) string {
	if force {
		return ", past what held it as far as that may be forced"
	}
	return ""
}
