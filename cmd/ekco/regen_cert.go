package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/hosttask"
)

func newRegenCertCommand(a *app) *cobra.Command {
	var add, drop []string
	var force bool
	cmd := &cobra.Command{
		Use:   "regen-cert",
		Short: "Change the names in the API server's certificate on this host",
		Long: `Replaces apiserver.crt and apiserver.key in certificates_dir by a certificate with names added
or dropped, signed by the CA there. Subject, usages, validity and kind of key are kept; the
key is new. The API server reads both files again without a restart. If the certificate
already has exactly these names, nothing is changed.

kURL's installer runs it on each primary when the load balancer's address changes. It needs
neither the cluster nor an operator, and writes to no journal.

Exit codes: 0 the certificate has these names; 1 refused or failed; 2 the
command line or the configuration makes no sense.`,
		Example: `  ekco regen-cert --add-alt-names=lb.example.com,10.0.0.9
  ekco regen-cert --drop-alt-names=old-lb.example.com`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.settings(cmd, "certificates_dir")
			if err != nil {
				return err
			}
			serviceHost, _ := a.env("KUBERNETES_SERVICE_HOST") // the kubelet sets it in pods
			names := certificates.APIServerNames{Dir: cfg.CertificatesDir, Add: add, Drop: drop, ServiceHost: serviceHost, Force: force, Renewal: certificates.Renewal{Now: a.now()}}
			host, _ := a.env(hosttask.EnvNode)
			if host == "" {
				if host, err = os.Hostname(); err != nil {
					return err
				}
			}
			names.NodeName = strings.TrimPrefix(host, "regen-cert-") // kURL's installer runs the command in pod regen-cert-NODE
			changed, err := names.Change(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.stdout, changedNamesText(changed))
			return err
		},
	}
	cmd.Flags().StringSliceVar(&add, "add-alt-names", nil, "names and addresses to add, with commas between them")
	cmd.Flags().StringSliceVar(&drop, "drop-alt-names", nil, "names and addresses to drop, with commas between them")
	cmd.Flags().BoolVar(&force, "force", false, "allow two risky changes: drop names that programs may need to reach the API server (kubernetes, kubernetes.default…, localhost, the name of this node, the server in kubelet.conf, IP addresses), and sign with a CA other than the present one")
	config.RegisterFlags(cmd.Flags(), "certificates_dir")
	return cmd
}

func changedNamesText(changed certificates.ChangedNames) string {
	if changed.Unchanged {
		return "The API server's certificate has these names already: " + strings.Join(changed.Included, ", ") + "\n"
	}
	var out strings.Builder
	for _, line := range []struct {
		what  string
		names []string
	}{
		{"Added", changed.Added}, {"Dropped", changed.Dropped}, {"The API server's certificate is new, and includes", changed.Included},
	} {
		if len(line.names) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", line.what, strings.Join(line.names, ", "))
		}
	}
	return out.String()
}
