package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
	"github.com/replicatedhq/ekco/test/controlplane/internal/plane"
)

// Embedded runs an embedded program with its arguments and returns its exit code.
type Embedded func(name string, args []string) (int, error)

// exitError is the error of an embedded program that has already printed the reason.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the command line and returns the exit code: 0 on success, 1 otherwise. For kubectl and the other embedded
// programs, it returns their exit code.
func Main(args []string, stdout, stderr io.Writer, embedded Embedded) int {
	root := newRoot(embedded)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		_, _ = fmt.Fprintln(stderr, "controlplane:", err)
		return 1
	}
}

func newRoot(embedded Embedded) *cobra.Command {
	root := &cobra.Command{
		Use:   "controlplane",
		Short: "A real Kubernetes control plane on loopback, with simulated nodes",
		Long: "controlplane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler\n" +
			"on 127.0.0.1, with simulated nodes that can be lost, returned and replaced.\n" +
			"It is for tests: its data does not survive a stop.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(newUp(), newDown(), newNode(), newScale(), newKubeconfig())
	root.AddCommand(embeddedCommands(embedded)...)
	root.AddCommand(newExecServer())
	return root
}

// untilSignal returns a context that ends at SIGINT or SIGTERM. Embedded programs handle signals themselves.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
}

// dirFlag adds --dir.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "directory of the control plane")
}

// absolute returns the absolute path of a directory, because components may have another working directory.
func absolute(dir string) (plane.Dir, error) {
	if dir == "" {
		return "", errors.New("give the directory of the control plane: --dir")
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find directory %s: %w", dir, err)
	}
	return plane.Dir(path), nil
}

// target is the control plane that a command uses.
type target struct {
	dir, kubeconfig string
}

// flags adds --dir and --kubeconfig.
func (t *target) flags(cmd *cobra.Command) {
	dirFlag(cmd, &t.dir)
	cmd.Flags().StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig of the control plane, instead of --dir")
	cmd.MarkFlagsMutuallyExclusive("dir", "kubeconfig")
	cmd.MarkFlagsOneRequired("dir", "kubeconfig")
}

// client returns a client of the control plane.
func (t *target) client() (kubernetes.Interface, error) {
	path, err := t.path()
	if err != nil {
		return nil, err
	}
	return cluster.Client(path)
}

func (t *target) path() (string, error) {
	if t.kubeconfig != "" {
		return t.kubeconfig, nil
	}
	dir, err := absolute(t.dir)
	if err != nil {
		return "", err
	}
	return dir.Kubeconfig(), nil
}
