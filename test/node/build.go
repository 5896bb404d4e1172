package nodetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build installs and builds all parts of a node. source is the folder of EKCO's module. dir receives the results.
func Build(ctx context.Context, source, dir string) error {
	install := exec.CommandContext(ctx, filepath.Join(source, "test/node/install.sh"))
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return fmt.Errorf("install the programs of nodes: %w", err)
	}
	build := exec.CommandContext(ctx, filepath.Join(source, "test/controlplane/build.sh"))
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	binaries.controlplane = strings.TrimSpace(string(path))
	binaries.pause = filepath.Join(dir, "pause.tar")
	return buildImage(ctx, source, "pause", "pause", binaries.pause)
}
