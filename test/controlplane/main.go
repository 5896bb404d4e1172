// Command controlplane runs a real Kubernetes control plane on loopback, with
// simulated nodes, for EKCO's tests and demo. See the README in this directory.
package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cli"
	"github.com/replicatedhq/ekco/test/controlplane/internal/component"
	"github.com/replicatedhq/ekco/test/controlplane/internal/embedded"
)

func main() {
	args := os.Args[1:]
	// Under the name of an embedded program, run that program: images have links to this binary.
	if name := filepath.Base(os.Args[0]); slices.Contains(component.Names(), name) {
		args = append([]string{name}, args...)
	}
	os.Exit(cli.Main(args, os.Stdout, os.Stderr, embedded.Run))
}
