package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
)

func newKubeconfig() *cobra.Command {
	var to target
	var account, out string
	cmd := &cobra.Command{
		Use:   "kubeconfig --service-account NAMESPACE/NAME",
		Short: "Make a kubeconfig with a 24-hour token of a service account",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := untilSignal(cmd)
			defer cancel()
			namespace, name, found := strings.Cut(account, "/")
			if !found || namespace == "" || name == "" {
				return fmt.Errorf("--service-account is %q: use NAMESPACE/NAME", account)
			}
			path, err := to.path()
			if err != nil {
				return err
			}
			data, err := cluster.AccountKubeconfig(ctx, path, namespace, name)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = cmd.OutOrStdout().Write(data)
				return err
			}
			if err := os.WriteFile(out, data, 0o600); err != nil {
				return fmt.Errorf("cannot write the kubeconfig: %w", err)
			}
			return nil
		},
	}
	to.flags(cmd)
	cmd.Flags().StringVar(&account, "service-account", "", "NAMESPACE/NAME of an existing service account")
	cmd.Flags().StringVar(&out, "out", "", "file to write instead of standard output")
	_ = cmd.MarkFlagRequired("service-account")
	return cmd
}
