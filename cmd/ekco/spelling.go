package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// spellFlags accepts every flag with dashes and with underscores, because configuration keys have underscores and users
// type dashes. Help shows the spelling of the declaration.
func spellFlags(cmd *cobra.Command) {
	spellings := make(map[string]pflag.NormalizedName)
	for at := cmd; at != nil; at = at.Parent() {
		learn := func(flag *pflag.Flag) {
			if _, known := spellings[underscores(flag.Name)]; !known {
				spellings[underscores(flag.Name)] = pflag.NormalizedName(flag.Name)
			}
		}
		at.PersistentFlags().VisitAll(learn)
		if at == cmd {
			at.Flags().VisitAll(learn)
		}
	}
	spell := func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if spelling, known := spellings[underscores(name)]; known {
			return spelling
		}
		return pflag.NormalizedName(name)
	}
	cmd.Flags().SetNormalizeFunc(spell)
	cmd.PersistentFlags().SetNormalizeFunc(spell)
	for _, child := range cmd.Commands() {
		spellFlags(child)
	}
}

func underscores(name string) string { return strings.ReplaceAll(name, "-", "_") }
