package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
	"github.com/replicatedhq/ekco/test/controlplane/internal/execserver"
)

// newExecServer returns the command of the component that serves exec. It is hidden, because only the supervisor uses
// it.
func newExecServer() *cobra.Command {
	var o execserver.Options
	var kubeconfig string
	cmd := &cobra.Command{
		Use:    component.ExecServer,
		Short:  "Serve exec into simulated pods",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := untilSignal(cmd)
			defer cancel()
			client, err := cluster.Client(kubeconfig)
			if err != nil {
				return err
			}
			o.API, o.Log = client, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return execserver.Serve(ctx, o)
		},
	}
	cmd.Flags().StringVar(&o.Address, "address", "", "host:port to listen at")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig for reading pods and nodes")
	cmd.Flags().StringVar(&o.Cert, "cert", "", "serving certificate")
	cmd.Flags().StringVar(&o.Key, "key", "", "key of the serving certificate")
	cmd.Flags().StringVar(&o.ClientCA, "client-ca", "", "CA of the client's certificate")
	cmd.Flags().StringVar(&o.Client, "client", "", "common name of the client's certificate")
	cmd.Flags().StringVar(&o.Program, "program", "", "program to run; empty refuses every exec")
	return cmd
}
