package loadbalancertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// HAProxy is a program of one version.
type HAProxy struct {
	Version string
	Path    string
}

// Install returns the HAProxies, oldest first. It unpacks missing ones. dir is the path of test/loadbalancer relative
// to the working directory.
func Install(ctx context.Context, dir string) ([]HAProxy, error) {
	haproxies := []HAProxy{{Version: "2.6"}, {Version: "3.0"}}
	script, err := filepath.Abs(filepath.Join(dir, "install.sh"))
	if err != nil {
		return nil, err
	}
	for i, suite := range []string{"bookworm", "trixie"} {
		install := exec.CommandContext(ctx, script, suite)
		install.Stderr = os.Stderr
		output, err := install.Output()
		if err != nil {
			return nil, fmt.Errorf("install HAProxy %s: %w", haproxies[i].Version, err)
		}
		haproxies[i].Path = strings.TrimSpace(string(output))
	}
	return haproxies, nil
}

// Check lets HAProxy check a configuration. A warning counts as an error.
func (h HAProxy) Check(ctx context.Context, config string) error {
	check := exec.CommandContext(ctx, h.Path, "-c", "-dW", "-f", "/dev/stdin")
	check.Stdin = strings.NewReader(config)
	if output, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("HAProxy %s: %w: %s", h.Version, err, output)
	}
	return nil
}
