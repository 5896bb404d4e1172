package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
)

const primaryHost = "primary-host"

func newGenerateHAProxyConfigCommand(a *app) *cobra.Command {
	// With pflag's own lists, all after a line break would be lost.
	var given []string
	cmd := &cobra.Command{
		Use:   "generate-haproxy-config",
		Short: "Print HAProxy's configuration for the API servers",
		Long: `Prints the configuration with which HAProxy leads port 6444 of a node to the API servers of
the primaries, on port 6443, to those that are ready. Nothing else is on standard output, and
nothing at all where a primary makes no sense.

The installer of kURL writes it into /etc/haproxy/haproxy.cfg. The command asks neither the
cluster nor an operator.`,
		Example: `  ekco generate-haproxy-config --primary-host=10.0.0.1,10.0.0.2,10.0.0.3
  ekco generate-haproxy-config --primary-host=fd00::1 --primary-host=primary-2.example.com`,
		Args: noArgument,
		RunE: func(*cobra.Command, []string) error {
			var primaries []string
			for _, list := range given {
				if list != "" {
					primaries = append(primaries, strings.Split(list, ",")...)
				}
			}
			if len(primaries) == 0 {
				return usagef("give the primaries: --primary-host=10.0.0.1,10.0.0.2")
			}
			config, err := loadbalancer.Config(primaries)
			if err != nil {
				return usageError{err}
			}
			_, err = fmt.Fprint(a.stdout, config)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&given, primaryHost, nil, "`hosts` that are primaries: IP addresses or names, with commas between them (required)")
	complete(cmd, primaryHost, offerNothing)
	return cmd
}

// offerNothing keeps a shell from offering files for a value that is none.
func offerNothing(*cobra.Command) []string { return nil }
