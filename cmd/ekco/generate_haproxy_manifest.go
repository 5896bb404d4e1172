package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
)

func newGenerateHAProxyManifestCommand(a *app) *cobra.Command {
	var file, image string
	cmd := &cobra.Command{
		Use:   "generate-haproxy-manifest",
		Short: "Write the manifest of HAProxy's static pod on this host",
		Long: `Writes the manifest with which the kubelet of this host runs HAProxy with the configuration
in /etc/haproxy/haproxy.cfg. A manifest that already has the image and the file version is not
written again, since the kubelet would restart HAProxy. If the file is not HAProxy's manifest,
it is kept, and that is an error.

kURL's installer runs it. It needs neither the cluster nor an operator, and reports on standard
error what it did.`,
		Example: `  ekco generate-haproxy-manifest --file=/etc/kubernetes/manifests/haproxy.yaml --image=haproxy:lts-alpine`,
		Args:    noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if image == "" {
				return usagef("give the image: --image=haproxy:lts-alpine")
			}
			if file == "" {
				return usagef("give the file, or leave out --file")
			}
			if err := loadbalancer.CheckImage(image); err != nil {
				return usageError{err}
			}
			if cmd.Flags().Changed(primaryHost) {
				// Cobra's MarkDeprecated is not used, because it prints its note to standard output.
				if _, err := fmt.Fprintf(a.stderr, "ekco: --%s is ignored: the primaries are in HAProxy's configuration\n", primaryHost); err != nil {
					return err
				}
			}
			written, err := loadbalancer.WriteManifest(file, image)
			if err != nil {
				return err
			}
			outcome := "has image %s already, and was not changed"
			if written {
				outcome = "is written, with image %s"
			}
			_, err = fmt.Fprintf(a.stderr, "%s "+outcome+"\n", file, image)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "/etc/kubernetes/manifests/haproxy", "the manifest")
	cmd.Flags().StringVar(&image, "image", "", "image of HAProxy (required)")
	// Installers of earlier versions still pass this flag.
	cmd.Flags().StringArray(primaryHost, nil, "has no effect")
	if err := cmd.Flags().MarkHidden(primaryHost); err != nil {
		panic(err)
	}
	complete(cmd, "image", noCompletion)
	return cmd
}
