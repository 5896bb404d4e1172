package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/fsm"
)

// outputFlag adds the flag -o, which accepts only the given formats.
func outputFlag(cmd *cobra.Command, into *string, byDefault string, formats ...string) {
	cmd.Flags().StringVarP(into, "output", "o", byDefault, "one of "+strings.Join(formats, ", "))
	complete(cmd, "output", func(*cobra.Command) []string { return formats })
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, *into) {
			return usagef("--output is %q: want one of %s%s", *into, strings.Join(formats, ", "), fsm.DidYouMean(fsm.Near(*into, slices.Values(formats))))
		}
		if inner != nil {
			return inner(cmd, args)
		}
		return nil
	}
}
