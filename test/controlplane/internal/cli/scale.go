package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
)

func newScale() *cobra.Command {
	var to target
	var grace int
	var o cluster.ScaleOptions
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Create many workers and pods; start the control plane with up --scale",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Nodes < 0 || o.PodsPerNode < 0 || grace < 0 {
				return errors.New("--nodes, --pods-per-node and --pod-grace-seconds must not be negative")
			}
			ctx, cancel := untilSignal(cmd)
			defer cancel()
			client, err := to.client()
			if err != nil {
				return err
			}
			o.Grace = time.Duration(grace) * time.Second
			o.Progress = cmd.ErrOrStderr()
			return cluster.Scale(ctx, client, o)
		},
	}
	to.flags(cmd)
	cmd.Flags().IntVar(&o.Nodes, "nodes", 1000, "number of workers, scale-00001 and up")
	cmd.Flags().IntVar(&o.PodsPerNode, "pods-per-node", 10, "number of pods on each, in namespace scale; at most 110")
	cmd.Flags().IntVar(&grace, "pod-grace-seconds", 1, "terminationGracePeriodSeconds of the pods")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 15*time.Minute, "give up after this time")
	return cmd
}
