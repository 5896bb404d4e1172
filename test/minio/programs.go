package miniotest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs has the paths of the programs that tests start.
type Programs struct{ Server, Client string }

// Build builds the programs, unless they are cached. dir is the path of test/minio relative to the working directory.
func Build(ctx context.Context, dir string) (Programs, error) {
	build := exec.CommandContext(ctx, filepath.Join(dir, "server", "build.sh"))
	build.Stderr = os.Stderr
	output, err := build.Output()
	if err != nil {
		return Programs{}, fmt.Errorf("build MinIO: %w", err)
	}
	server := strings.TrimSpace(string(output))
	return Programs{Server: server, Client: filepath.Join(filepath.Dir(server), "mc")}, nil
}
