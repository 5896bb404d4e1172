package containerdtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// namespace is Kubernetes' namespace in containerd.
const namespace = "k8s.io"

const configuration = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
# Without Kubernetes' interface, which wants a network, and without the
# snapshotters that want devices.
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "%[1]s/socket"
[ttrpc]
  address = "%[1]s/socket.ttrpc"
`

// Server is a running containerd.
type Server struct {
	tb      testing.TB
	dir     string
	process *child.Process
	started int
}

// Start starts a containerd, which ends with the test. It neither sees nor changes images and containers of other
// containerds on the machine.
func Start(tb testing.TB) *Server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ekco-containerd-") // short: it is part of a socket's path
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("containerd left something mounted: %v", err)
		}
	})
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, dir), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir, process: child.Start(tb, "containerd", "--config", config)}
	tb.Cleanup(s.end)
	await.Until(tb, await.HangTimeout, "containerd answers", func() (bool, string) {
		output, err := s.Ctr("version")
		return err == nil, output + s.process.Output.Tail(500)
	})
	return s
}

// Ctr runs ctr in Kubernetes' namespace and returns its output. The error includes its standard error.
func (s *Server) Ctr(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), await.HangTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "ctr", append([]string{"--address", filepath.Join(s.dir, "socket"), "--namespace", namespace}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Run runs a container in its own cgroup, waits for its end, removes it, and returns its output. options are options of
// ctr run.
func (s *Server) Run(options []string, image string, command ...string) (string, error) {
	s.started++
	id := fmt.Sprintf("ekco-test-%d-%d", os.Getpid(), s.started)
	args := append([]string{"run", "--rm", "--cgroup", id}, options...)
	return s.Ctr(append(append(args, image, id), command...)...)
}

// end kills containers that a failed test left, and stops containerd.
func (s *Server) end() {
	tasks, err := s.Ctr("task", "ls", "--quiet")
	if err != nil {
		s.tb.Errorf("cannot look for containers that still run: %v", err)
	}
	for _, id := range strings.Fields(tasks) {
		s.tb.Errorf("container %s still ran", id)
		if _, err := s.Ctr("task", "rm", "--force", id); err != nil {
			s.tb.Errorf("cannot end container %s: %v", id, err)
		}
	}
	s.process.Stop(await.HangTimeout)
}
