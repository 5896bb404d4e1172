package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/durable"
)

// maxConfigMap is the maximum size of a ConfigMap.
const maxConfigMap = 1 << 20

// newFlattenConfigCommand is for the kURL add-on, which merges the settings of the cluster with those of the installer.
// An administrator may have written them in any form that YAML permits. The command writes to a file, because the
// settings contain a secret.
func newFlattenConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "flatten-config FROM TO", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			content, err := durable.Read(args[0], maxConfigMap)
			if err != nil {
				return fmt.Errorf("read the settings to flatten: %w", err)
			}
			flat, err := config.Flatten(filepath.Base(args[0]), content)
			if err != nil {
				return fmt.Errorf("%w: %w", config.ErrInvalid, err)
			}
			if err := os.WriteFile(args[1], flat, 0o600); err != nil {
				return fmt.Errorf("write the flattened settings: %w", err)
			}
			return nil
		},
	}
}
