package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

func newJournalAcceptCommand(a *app) *cobra.Command {
	var request api.AcceptRequest
	var yes bool
	cmd := &cobra.Command{
		Use:   "accept",
		Short: "End safe mode after the journal was damaged, or lost its newest events",
		Long: `Ends safe mode. EKCO enters it after it found the journal damaged, renamed the file and
kept what was readable; or after it found that the journal lacks events that its mirror
in the cluster has, because an older copy was restored. In safe mode EKCO observes and
explains, and does nothing else. Run "ekco status" and "ekco history" before you accept:
the lost events may have been the record of work that is half done.

It first says which events are lost and what EKCO resumes, and asks on a terminal.`,
		Example: `  ekco journal accept --reason "compared with the cluster, nothing is half done"`,
		Args:    noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runRecorded(cmd, func(backend *connection) (string, error) {
				if err := a.confirmAccept(cmd.Context(), backend, yes); err != nil {
					return "", err
				}
				return "accepted; safe mode has ended", backend.Do(cmd.Context(), request)
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirmAccept prints the consequences, and asks for a confirmation if standard input is a terminal.
func (a *app) confirmAccept(ctx context.Context, backend api.Backend, yes bool) error {
	status, err := backend.Status(ctx)
	if err != nil {
		return err
	}
	if status.Journal.SafeMode == nil && status.Journal.Outdated == nil {
		return nil // the request returns the error
	}
	for _, line := range a.acceptConsequences(status) {
		_, _ = fmt.Fprintln(a.stderr, view.Clean(line))
	}
	if yes || !a.askable {
		return nil
	}
	prompt := &promptOutput{w: a.stderr}
	answer, err := prompt.ask(ctx, a.stdin, "Accept the journal? [y/N] ")
	if err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return fmt.Errorf("the journal is not accepted: the question was not answered with yes; EKCO stays in safe mode")
}

// acceptConsequences returns lines that describe what EKCO does after the journal is accepted.
func (a *app) acceptConsequences(status api.Status) (lines []string) {
	if lost := view.Lost(status.Journal); lost != "" {
		lines = append(lines, lost)
	}
	if len(status.Actions) == 0 {
		lines = append(lines, "No action is open, so EKCO resumes none.")
	}
	for _, action := range status.Actions {
		lines = append(lines, fmt.Sprintf("EKCO resumes %s, requested at %s by %s%s.", a.describeAction(action), words.Stamp(action.RequestedAt), action.RequestedBy, continuesAt(action)))
	}
	if len(status.Pauses) == 0 {
		after := ""
		if !status.Journal.LostFrom.IsZero() {
			after = " after " + words.Stamp(status.Journal.LostFrom)
		}
		return append(lines, "Nothing is paused. If you set a pause"+after+", set it again.")
	}
	for _, pause := range view.PausesOf(status) {
		lines = append(lines, pause.What+" stays paused.")
	}
	return lines
}

// continuesAt returns the end of a sentence that names the step at which an action continues.
func continuesAt(action journal.ActionRecord) string {
	if !action.Planned {
		return ", which is not planned yet"
	}
	for _, step := range action.Plan.Steps {
		if !action.Steps[step.ID].Done() {
			return ", at step " + step.ID
		}
	}
	return ""
}
