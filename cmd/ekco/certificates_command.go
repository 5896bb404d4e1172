package main

import (
	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func newCertificatesCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "Show the certificates that EKCO knows, and when they expire",
		Long: `Shows each certificate that EKCO knows, the one that expires first on top: where it
is, how many days are left, its state, when EKCO renewed it and by which action, and what
a renewal waits for. EKCO renews those of control planes, of the registry, of the kURL proxy,
of Contour and Envoy, and the copy with which KOTS asks kubelets. It shows the cluster's CAs,
and what each kubelet serves, which it does not renew. Where no operator runs, it shows what
the journal says.`,
		Example: `  ekco certificates
  ekco certificates -o json`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStatus(cmd, func(status api.Status) error {
				return view.Certificates(a.stdout, status, output, a.color())
			})
		},
	}
	outputFlag(cmd, &output, "table", "table", "json", "yaml")
	return cmd
}
