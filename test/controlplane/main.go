// Command controlplane runs a real Kubernetes control plane on loopback, with
// simulated nodes, for EKCO's tests and demo. See the README beside it.
package main

import (
	"os"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cli"
	"github.com/replicatedhq/ekco/test/controlplane/internal/embedded"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr, embedded.Run))
}
