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
is, how many days are left, its state, when and by which action EKCO renewed it, and what
a renewal waits for. EKCO renews those of control planes, the registry, the kURL proxy,
Contour and Envoy, and the copy with which KOTS authenticates to kubelets. EKCO does not
renew the cluster's CAs and the certificates that kubelets serve. If no operator runs, the
command shows what is in the journal.`,
		Example: `  ekco certificates
  ekco certificates -o json`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStatus(cmd, func(status api.Status) error {
				return view.Certificates(a.stdout, status, output, a.useColor())
			})
		},
	}
	outputFlag(cmd, &output, "table", "table", "json", "yaml")
	return cmd
}
