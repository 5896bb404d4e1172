package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newPauseCommand(a *app) *cobra.Command {
	var request api.PauseRequest
	cmd := &cobra.Command{
		Use:   "pause [NODE]",
		Short: "Keep EKCO from starting anything, on all nodes or on one",
		Long: `Keeps EKCO from starting actions by itself until "ekco resume", or for a time.
It goes on observing. The pause is in the journal and survives restarts. Without
NODE it concerns the whole cluster.`,
		Example: `  ekco pause --reason "network maintenance" --for 2h
  ekco pause worker-2 --reason "disk swap"`,
		Args:              nodeArgument.optional,
		ValidArgsFunction: completeFirst(a.presentNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			if request.Reason == "" {
				return usagef("a pause needs a --reason, for those who find EKCO paused")
			}
			if request.For < 0 {
				return usagef("--for is %s: want a duration above zero, like 2h", request.For)
			}
			if len(args) == 1 {
				request.Node = args[0]
			}
			return a.tell(cmd, func(backend *connection) (string, error) {
				until := "until \"ekco resume\""
				if request.For > 0 {
					until = "until " + a.now().Add(request.For).UTC().Format(time.RFC3339)
				}
				return fmt.Sprintf("paused %s %s", nodeOrAll(request.Node), until), backend.Pause(cmd.Context(), request)
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for those who find EKCO paused (required)")
	cmd.Flags().DurationVar(&request.For, "for", 0, "end the pause by itself after this time, like 2h")
	return cmd
}

func newResumeCommand(a *app) *cobra.Command {
	var request api.ResumeRequest
	cmd := &cobra.Command{
		Use:   "resume [NODE]",
		Short: "End a pause",
		Long: `Ends the pause of the whole cluster, or the one of NODE. The two are apart: a
node that was paused itself stays paused when the cluster is resumed.`,
		Example: `  ekco resume
  ekco resume worker-2`,
		Args:              nodeArgument.optional,
		ValidArgsFunction: completeFirst(a.pausedNodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				request.Node = args[0]
			}
			return a.tell(cmd, func(backend *connection) (string, error) {
				return "resumed " + nodeOrAll(request.Node), backend.Resume(cmd.Context(), request)
			})
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, for the record")
	return cmd
}

func nodeOrAll(node string) string {
	if node == "" {
		return "everything"
	}
	return "node " + view.Clean(node)
}

// tell gives the operator, or the journal, a word, and says that it was taken.
func (a *app) tell(cmd *cobra.Command, word func(*connection) (string, error)) error {
	return a.with(cmd.Context(), cmd, func(backend *connection) error {
		done, err := word(backend)
		if err != nil {
			return err
		}
		if !backend.running {
			done += "; no operator runs, so it is written to the journal for the next start"
		}
		_, err = fmt.Fprintln(a.stdout, done)
		return err
	})
}
