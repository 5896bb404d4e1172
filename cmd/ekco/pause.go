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
		Short: "Keep EKCO from starting anything, or anything about one node",
		Long: `Keeps EKCO from starting actions by itself until "ekco resume", or for a time.
It goes on observing. The pause is in the journal and survives restarts. It
is also in the mirror in the cluster, for when this machine is lost, unless the answer says that it is not. Without
NAME it concerns the whole cluster. NAME is that of a node, or of anything else that
can be paused; where several things have it, say which, as in node/NAME.`,
		Example: `  ekco pause --reason "network maintenance" --for 2h
  ekco pause worker-2 --reason "disk swap"
  ekco pause node/worker-2 --reason "disk swap"`,
		Args:              nameArgument.optional,
		ValidArgsFunction: completeFirst(a.presentNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			if request.Reason == "" {
				return usagef("a pause needs a --reason, for those who find EKCO paused")
			}
			if len(args) == 1 {
				request.Name = args[0]
			}
			return a.tell(cmd, func(backend *connection) (string, error) {
				until := strings.TrimSpace("until \"ekco resume "+request.Name) + "\""
				if request.For > 0 {
					until = "until " + a.now().Add(request.For).UTC().Format(time.RFC3339)
				}
				before := pausedBefore(cmd.Context(), backend, request.Name)
				unmirrored, err := inForce(backend.Pause(cmd.Context(), request))
				return fmt.Sprintf("paused %s %s%s%s", nameOrAll(request.Name), until, before, unmirrored), err
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for those who find EKCO paused (required)")
	cmd.Flags().Var(spanFlag{&request.For}, "for", "end the pause automatically after this time, like 2h or 1d")
	return cmd
}

func newResumeCommand(a *app) *cobra.Command {
	var request api.ResumeRequest
	cmd := &cobra.Command{
		Use:   "resume [NAME]",
		Short: "End a pause",
		Long: `Ends the pause of the whole cluster, or the one of NAME. The two are apart: a
node that was paused itself stays paused when the cluster is resumed. Where several
things of that name are paused, say which, as in node/NAME.`,
		Example: `  ekco resume
  ekco resume worker-2
  ekco resume node/worker-2`,
		Args:              nameArgument.optional,
		ValidArgsFunction: completeFirst(a.pausedNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				request.Name = args[0]
			}
			return a.tell(cmd, func(backend *connection) (string, error) {
				unmirrored, err := inForce(backend.Resume(cmd.Context(), request))
				if err != nil {
					return "", err
				}
				return "resumed " + nameOrAll(request.Name) + stillPaused(cmd.Context(), backend) + unmirrored, nil
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the record")
	return cmd
}

// inForce returns what to add to the answer if the word was taken but is not in the mirror, which is no failure.
func inForce(err error) (unmirrored string, _ error) {
	if errors.Is(err, api.ErrNotMirrored) {
		return "; " + view.Clean(err.Error()), nil
	}
	return "", err
}

// pausedBefore says, to be added to a pause, in the place of which one it comes: its end may
// be another.
func pausedBefore(ctx context.Context, backend api.Backend, name string) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return "" // the pause itself says so
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
		return fmt.Sprintf(", in the place of the pause %s that %s had set%s", until, view.Clean(pause.By), words.Because(view.Clean(pause.Reason)))
	}
	return ""
}

// stillPaused says, to be added to the end of a pause, which others stay.
func stillPaused(ctx context.Context, backend api.Backend) string {
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

// tell gives the operator, or the journal, a word, and says that it was taken.
func (a *app) tell(cmd *cobra.Command, word func(*connection) (string, error)) error {
	return a.with(cmd.Context(), cmd, func(backend *connection) error {
		done, err := word(backend)
		if err != nil {
			return err
		}
		return a.taken(backend, done)
	})
}

// taken says that a word was taken.
func (a *app) taken(backend *connection, done string) error {
	if !backend.running {
		done += "; no operator runs, so it is written to the journal for the next start, and the mirror in the cluster does not have it until then"
	}
	_, err := fmt.Fprintln(a.stdout, done)
	return err
}
