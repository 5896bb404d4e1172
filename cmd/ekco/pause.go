package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal/words"
)

func newPauseCommand(a *app) *cobra.Command {
	var request api.PauseRequest
	cmd := &cobra.Command{
		Use:   "pause [NAME]",
		Short: "Stop EKCO from starting actions, for the cluster or one node",
		Long: `Stops EKCO from starting actions automatically until "ekco resume", or for a time.
EKCO continues to observe. The pause is in the journal and survives restarts. It is also
in the mirror in the cluster, and so survives the loss of this machine, unless the answer
says otherwise. Without NAME it applies to the whole cluster. A NAME without a kind means the
node of that name, if there is one; for another thing, give KIND/NAME.`,
		Example: `  ekco pause --reason "network maintenance" --for 2h
  ekco pause worker-2 --reason "disk swap"
  ekco pause node/worker-2 --reason "disk swap"`,
		Args:              nameArgument.allowOne,
		ValidArgsFunction: completeFirst(a.presentNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			if request.Reason == "" {
				return usagef("a pause needs a --reason, which tells other administrators why EKCO is paused")
			}
			if len(args) == 1 {
				request.Name = args[0]
			}
			return a.runRecorded(cmd, func(backend *connection) (string, error) {
				name := request.Name
				request.Name = qualifyNode(cmd.Context(), backend, name)
				until := strings.TrimSpace("until \"ekco resume "+name) + "\""
				if request.For > 0 {
					until = "until " + a.now().Add(request.For).UTC().Format(time.RFC3339)
				}
				before := replacedPauseNote(cmd.Context(), backend, request.Name)
				unmirrored, err := unmirroredNote(backend.Do(cmd.Context(), request))
				return fmt.Sprintf("paused %s %s%s%s", nameOrAll(name), until, before, unmirrored), err
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for other administrators (required)")
	cmd.Flags().Var(spanFlag{&request.For}, "for", "end the pause automatically after this time, like 2h or 1d")
	return cmd
}

func newResumeCommand(a *app) *cobra.Command {
	var request api.ResumeRequest
	cmd := &cobra.Command{
		Use:   "resume [NAME]",
		Short: "End a pause",
		Long: `Ends the pause of the whole cluster, or the one of NAME. They are independent: a
node with a pause of its own stays paused when the cluster is resumed. A NAME without a
kind means the node of that name, if there is one.`,
		Example: `  ekco resume
  ekco resume worker-2
  ekco resume node/worker-2`,
		Args:              nameArgument.allowOne,
		ValidArgsFunction: completeFirst(a.pausedNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				request.Name = args[0]
			}
			return a.runRecorded(cmd, func(backend *connection) (string, error) {
				name := request.Name
				request.Name = qualifyNode(cmd.Context(), backend, name)
				unmirrored, err := unmirroredNote(backend.Do(cmd.Context(), request))
				if err != nil {
					return "", err
				}
				return "resumed " + nameOrAll(name) + remainingPausesNote(cmd.Context(), backend) + unmirrored, nil
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the record")
	return cmd
}

// unmirroredNote returns a note instead of an error if a command was recorded but is not yet in the mirror.
func unmirroredNote(err error) (unmirrored string, _ error) {
	if errors.Is(err, api.ErrNotMirrored) {
		return "; " + view.Clean(err.Error()), nil
	}
	return "", err
}

// replacedPauseNote returns a note about the pause that the new pause replaces, because the end may differ.
func replacedPauseNote(ctx context.Context, backend api.Backend, name string) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return "" // the pause itself reports the error
	}
	for _, pause := range view.PausesOf(status) {
		kind, bare, _ := strings.Cut(pause.What, " ")
		if pause.Key != name && (name == "" || bare != name && !strings.EqualFold(kind+"/"+bare, name)) {
			continue
		}
		until := "without end"
		if !pause.Until.IsZero() {
			until = "until " + words.Stamp(pause.Until)
		}
		return fmt.Sprintf(", replacing the pause %s by %s%s", until, view.Clean(pause.By), words.Because(view.Clean(pause.Reason)))
	}
	return ""
}

// remainingPausesNote returns a note about the remaining pauses.
func remainingPausesNote(ctx context.Context, backend api.Backend) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return ""
	}
	var stay []string
	for _, pause := range view.PausesOf(status) {
		stay = append(stay, view.Clean(pause.What))
	}
	if len(stay) == 0 {
		return ""
	}
	return "; still paused: " + strings.Join(stay, ", ")
}

func nameOrAll(name string) string {
	if name == "" {
		return "everything"
	}
	return view.Clean(name)
}

// runRecorded calls send, which sends a command to the operator or writes it to the journal, and prints the result.
func (a *app) runRecorded(cmd *cobra.Command, send func(*connection) (string, error)) error {
	return a.withConnection(cmd.Context(), cmd, func(backend *connection) error {
		done, err := send(backend)
		if err != nil {
			return err
		}
		return a.printRecorded(backend, done)
	})
}

func (a *app) printRecorded(backend *connection, done string) error {
	if !backend.running {
		done += "; no operator runs, so it is written to the journal for the next start, and the mirror in the cluster does not have it until then"
	}
	_, err := fmt.Fprintln(a.stdout, done)
	return err
}
