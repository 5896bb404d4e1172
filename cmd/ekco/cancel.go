package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func newCancelCommand(a *app) *cobra.Command {
	var command api.CancelRequest
	cmd := &cobra.Command{
		Use:   "cancel ACTION|NAME",
		Short: "Stop an action before its point of no return",
		Long: `Asks an action to stop. A step in progress ends first or is cut short, and EKCO undoes
what can be undone: cancelling the purge of a node that answers restores its storage entry
and its OSDs. EKCO refuses to cancel an action that is past its point of no return.
The name of a node or thing stands for the one open action about it.`,
		Example: `  ekco cancel worker-2 --reason "I meant worker-3"
  ekco cancel purge-worker-2-57-3f9a --reason "the node is being repaired"`,
		Args:              actionArgument.requireOne,
		ValidArgsFunction: completeFirst(a.actionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runRecorded(cmd, func(backend *connection) (string, error) {
				status, err := backend.Status(cmd.Context())
				if err != nil {
					return "", err
				}
				action, err := openAction(status, "cancel", args[0])
				if err != nil {
					return "", err
				}
				if action.PastNoReturn && !fsm.Waits(&action) {
					return "", pastNoReturnError(status, action, backend.running)
				}
				command.Action = action.ID
				if err := backend.Do(cmd.Context(), command); err != nil {
					return "", err
				}
				if action, err = actionAfterCancel(cmd.Context(), backend, action); err != nil {
					return "", err
				}
				return view.Clean(a.describeAction(action) + " is asked to stop" + effectsText(action)), nil
			})
		},
	}
	cmd.Flags().StringVar(&command.Reason, "reason", "", "why, for the record")
	return cmd
}

// pastNoReturnError is the error for an action that is past its point of no return and still works. It says what the
// action waits for.
func pastNoReturnError(status api.Status, action journal.ActionRecord, running bool) error {
	if !running {
		return fmt.Errorf("cancel %s: %w; no operator runs, and the action continues when one starts", action.ID, fsm.ErrPastNoReturn)
	}
	return fmt.Errorf("cancel %s: %w; it cannot be stopped%s; follow it with: ekco history --action %s --follow",
		action.ID, fsm.ErrPastNoReturn, runningText(status, action), action.ID)
}

// actionAfterCancel reads the action after the request to stop. It returns an error if the action had already passed
// its point of no return. If the status cannot be read, it returns no error, because the request is recorded.
func actionAfterCancel(ctx context.Context, backend api.Backend, action journal.ActionRecord) (journal.ActionRecord, error) {
	status, err := backend.Status(ctx)
	if err != nil {
		return action, nil //nolint:nilerr // the cancel itself was accepted
	}
	i := slices.IndexFunc(status.Actions, func(now journal.ActionRecord) bool { return now.ID == action.ID })
	switch {
	case i < 0:
		return action, nil
	case status.Actions[i].PastNoReturn:
		return action, fmt.Errorf("cancel %s: %w when it was asked to stop; it continues; follow it with: ekco history --action %s --follow", action.ID, fsm.ErrPastNoReturn, action.ID)
	}
	return status.Actions[i], nil
}

// effectsText returns the end of a sentence that says what happens to the changes of a cancelled action.
func effectsText(action journal.ActionRecord) string {
	harmless := func(id string) bool { return !mayHaveChanged(action.Plan, id) }
	if len(slices.DeleteFunc(slices.Collect(maps.Keys(action.Steps)), harmless)) == 0 {
		return "; it has changed nothing"
	}
	text := ""
	switch steps := slices.DeleteFunc(runningSteps(action), harmless); len(steps) {
	case 0:
	case 1:
		text = "; " + steps[0] + " ends or is cut short"
	default:
		text = "; " + strings.Join(steps, ", ") + " end or are cut short"
	}
	var back []string
	for _, step := range action.ToUndo() {
		back = append(back, step.ID)
	}
	if len(back) > 0 {
		return text + "; its changes are undone by " + strings.Join(back, ", ")
	}
	return text + "; its changes so far stay: ekco history --action " + action.ID + " -o tree"
}

// mayHaveChanged reports whether a step may have changed something. It returns false for a step that undoes another.
func mayHaveChanged(plan journal.Plan, id string) bool {
	step, _ := plan.Step(id)
	return step.Undoes == "" && step.Does != actions.DoesGate && step.Does != purge.WaitForCancel
}
