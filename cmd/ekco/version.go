package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/internal/version"
)

func newVersionCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  ekco version
  ekco version -o json`,
		Args: noArgument,
		RunE: func(*cobra.Command, []string) error {
			if output == "text" {
				_, err := fmt.Fprintln(a.stdout, version.Get())
				return err
			}
			return view.Value(a.stdout, version.Get(), output)
		},
	}
	outputFlag(cmd, &output, "text", "text", "json", "yaml")
	return cmd
}
