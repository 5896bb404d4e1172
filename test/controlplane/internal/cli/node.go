package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/replicatedhq/ekco/test/controlplane/internal/cluster"
)

// act is an operation on one node.
type act func(ctx context.Context, client kubernetes.Interface, name string) error

// parallelNodes is the number of nodes on which one command works at the same time.
const parallelNodes = 64

func newNode() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Lose, return, replace and add simulated nodes", Args: cobra.NoArgs}
	cmd.AddCommand(
		nodeCommand("lose", "Let the kubelets of nodes die", "lost", cluster.Lose, cluster.IsLost),
		nodeCommand("return", "Bring lost nodes back", "returned", cluster.Return, cluster.IsUp),
		nodeCommand("replace", "Replace nodes by new ones with the same names and other UIDs", "replaced", cluster.Replace, cluster.IsUp),
		newNodeAdd(),
	)
	return cmd
}

// nodeCommand returns a command that calls do for each named node. With --wait it then waits until check succeeds for
// each.
func nodeCommand(verb, short, done string, do, check act) *cobra.Command {
	var to target
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   verb + " NAME...",
		Short: short,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return onNodes(cmd, to, names, func(ctx context.Context, client kubernetes.Interface, name string) error {
				if err := do(ctx, client, name); err != nil {
					return err
				}
				if wait > 0 {
					err := cluster.Await(ctx, wait, func(ctx context.Context) error { return check(ctx, client, name) })
					if err != nil {
						return err
					}
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "node/%s %s\n", name, done)
				return nil
			})
		},
	}
	to.flags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for the new status of the node; 0: do not wait")
	return cmd
}

func newNodeAdd() *cobra.Command {
	var role string
	var joining sync.Mutex // only one node at a time may search for a free address
	cmd := nodeCommand("add", "Add nodes", "added",
		func(ctx context.Context, client kubernetes.Interface, name string) error {
			r, err := cluster.ParseRole(role)
			if err != nil {
				return err
			}
			joining.Lock()
			defer joining.Unlock()
			return cluster.Join(ctx, client, name, r)
		}, cluster.IsUp)
	cmd.Flags().StringVar(&role, "role", string(cluster.Worker), "primary or worker")
	return cmd
}

// onNodes calls do for every name, several at a time. After all calls have ended, it returns the first error.
func onNodes(cmd *cobra.Command, to target, names []string, do act) error {
	ctx, cancel := untilSignal(cmd)
	defer cancel()
	client, err := to.client()
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(parallelNodes)
	for _, name := range names {
		group.Go(func() error { return do(ctx, client, name) })
	}
	return group.Wait()
}
