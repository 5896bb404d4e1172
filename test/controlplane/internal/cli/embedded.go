package cli

import (
	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
)

// embeddedCommands returns the commands of the embedded programs. All except kubectl are hidden, because only the
// supervisor uses them.
func embeddedCommands(run Embedded) []*cobra.Command {
	var commands []*cobra.Command
	for _, name := range component.Names() {
		commands = append(commands, &cobra.Command{
			Use:                name + " ARGS...",
			Short:              "Run the embedded " + name,
			Hidden:             name != component.Kubectl,
			DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error {
				code, err := run(name, args)
				if err != nil {
					return err
				}
				if code != 0 {
					return exitError(code)
				}
				return nil
			},
		})
	}
	return commands
}
