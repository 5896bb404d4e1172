package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
)

const primaryHost = "primary-host"

func newGenerateHAProxyConfigCommand(a *app) *cobra.Command {
	// StringArray keeps line breaks; pflag's list types would drop everything after a line break.
	var given []string
	cmd := &cobra.Command{
		Use:   "generate-haproxy-config",
		Short: "Print HAProxy's configuration for the API servers",
		Long: `Prints the configuration with which HAProxy forwards port 6444 of a node to port 6443 of those
primaries whose API server is ready. Standard output has nothing else, and nothing at all if a
primary is not valid.

kURL's installer writes it into /etc/haproxy/haproxy.cfg. The command needs neither the cluster
nor an operator.`,
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
	complete(cmd, primaryHost, noCompletion)
	return cmd
}

// noCompletion makes a shell offer no file names for a value that is not a file.
func noCompletion(*cobra.Command) []string { return nil }
