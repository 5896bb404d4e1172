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
		Long: `Writes the manifest with which the kubelet of this host runs HAProxy, which has its
configuration from /etc/haproxy/haproxy.cfg. A manifest that has the image and the file
version already is left alone, and keeps its time: the kubelet would restart HAProxy. What is
not HAProxy's manifest is left alone too, and is an error.

The installer of kURL runs it. It asks neither the cluster nor an operator. What it did is
said on standard error.`,
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
				// Cobra's own note for a deprecated flag would go to standard output.
				if _, err := fmt.Fprintf(a.stderr, "ekco: --%s is ignored: the primaries are in HAProxy's configuration\n", primaryHost); err != nil {
					return err
				}
			}
			written, err := loadbalancer.WriteManifest(file, image)
			if err != nil {
				return err
			}
			outcome := "has image %s already, and is left as it is"
			if written {
				outcome = "is written, with image %s"
			}
			_, err = fmt.Fprintf(a.stderr, "%s "+outcome+"\n", file, image)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "/etc/kubernetes/manifests/haproxy", "the manifest")
	cmd.Flags().StringVar(&image, "image", "", "image of HAProxy (required)")
	// Installers of earlier versions give it.
	cmd.Flags().StringArray(primaryHost, nil, "has no effect")
	if err := cmd.Flags().MarkHidden(primaryHost); err != nil {
		panic(err)
	}
	complete(cmd, "image", offerNothing)
	return cmd
}
