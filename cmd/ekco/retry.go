package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func newRetryCommand(a *app) *cobra.Command {
	var command api.RetryRequest
	cmd := &cobra.Command{
		Use:   "retry ACTION|NAME",
		Short: "Try a stalled or held action again, at once",
		Long: `Tries a stalled action again, or a held one without waiting for its next check.
"ekco status" shows the open actions and why they wait. If a node or another
object has one open action, its name is enough. A running action is not changed.

With --force it also overrides the present hold, if the reason in "ekco status"
names --force: the reason also says what may be lost. It overrides no other and no
later holds. If the reason is a list, --list must name the list: the reason
has the command. If the list has changed since, it overrides nothing.`,
		Example: `  ekco retry worker-2
  ekco retry purge-worker-2-57-3f9a --reason "the API server is back"
  ekco retry migrate-minio-8-1b2c --force --reason "the volumes can grow"
  ekco retry migrate-minio-8-1b2c --force --list 98b8988c37d5d530`,
		Args:              actionArgument.requireOne,
		ValidArgsFunction: completeFirst(a.actionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if command.List != "" && !command.Force {
				return usagef("--list needs --force")
			}
			return a.withConnection(cmd.Context(), cmd, func(backend *connection) error {
				status, err := backend.Status(cmd.Context())
				if err != nil {
					return err
				}
				action, err := openAction(status, "retry", args[0])
				if err != nil {
					return err
				}
				if runs := runningText(status, action); runs != "" && backend.running && !fsm.Waits(&action) {
					_, err := fmt.Fprintln(a.stdout, view.Clean(a.describeAction(action)+" is running"+runs+"; there is nothing to retry"))
					return err
				}
				command.Action = action.ID
				if err := backend.Do(cmd.Context(), command); err != nil {
					return err
				}
				return a.printRecorded(backend, view.Clean(a.describeAction(action))+retriedText(backend.running, command.Force))
			})
		},
	}
	cmd.Flags().StringVar(&command.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&command.Force, "force", false, "also override the hold on the action, if the reason of the hold names --force")
	cmd.Flags().StringVar(&command.List, "list", "", "the key of the list to override, from the reason")
	return cmd
}

// runningText returns the running steps, with what they wait for if that is known, or "".
func runningText(status api.Status, action journal.ActionRecord) string {
	steps := runningSteps(action)
	for i, step := range steps {
		if missing := status.Progress[action.ID][step].Missing; missing != "" {
			steps[i] += " " + missing
			if !strings.HasPrefix(missing, "waits ") {
				steps[i] = step + ": " + missing
			}
		}
	}
	if len(steps) == 0 {
		return ""
	}
	return ": " + strings.Join(steps, ", ")
}

// retriedText returns the end of a sentence: when the action is retried, and whether by force.
func retriedText(running, force bool) string {
	text := " is retried"
	if !running {
		text = " will be retried when EKCO starts"
	}
	if force {
		text += ", overriding the holds whose reasons name --force"
	}
	return text
}
