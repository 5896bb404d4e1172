package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/plane"
)

func newDown() *cobra.Command {
	var flag string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop the control plane of DIR, if it runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := untilSignal(cmd)
			defer cancel()
			dir, err := absolute(flag)
			if err != nil {
				return err
			}
			ended, err := plane.Down(ctx, dir)
			if err != nil {
				return fmt.Errorf("cannot stop the control plane of %s: %w", dir, err)
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "ended %d processes of %s\n", ended, dir)
			return nil
		},
	}
	dirFlag(cmd, &flag)
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}
