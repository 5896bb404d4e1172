package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/durable"
)

// maxConfigMap is the maximum size of a ConfigMap, in bytes.
const maxConfigMap = 1 << 20

// newFlattenConfigCommand is for the kURL add-on, a script that merges the cluster's settings with the installer's. An
// administrator may have edited the cluster's settings in any style that YAML permits. The command writes to a file,
// because the settings contain a secret.
func newFlattenConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "flatten-config FROM TO", Short: "Rewrite a YAML file with each key on one line", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			content, err := durable.Read(args[0], maxConfigMap)
			if err != nil {
				return fmt.Errorf("read the settings to flatten: %w", err)
			}
			flat, err := config.Flatten(filepath.Base(args[0]), content)
			if err != nil { // exit code 2, for which the add-on asks the administrator to correct the settings
				return fmt.Errorf("%w: %w", config.ErrInvalid, err)
			}
			if err := os.WriteFile(args[1], flat, 0o600); err != nil {
				return fmt.Errorf("write the flattened settings: %w", err)
			}
			return nil
		},
	}
}
