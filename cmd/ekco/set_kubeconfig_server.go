package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/internal/systemd"
	"github.com/replicatedhq/ekco/journal"
)

// kubelet is the systemd unit of the kubelet, which reads kubelet.conf.
const kubelet = "kubelet.service"

// kubeletTimeout is how long a restarted kubelet may take to become active.
const kubeletTimeout = time.Minute

// envSystemBus is the environment variable with the address of the host's D-Bus, if it is not at the usual place.
const envSystemBus = "DBUS_SYSTEM_BUS_ADDRESS"

func newSetKubeconfigServerCommand(a *app) *cobra.Command {
	var server, etc string
	var admin bool
	cmd := &cobra.Command{
		Use:   "set-kubeconfig-server",
		Short: "Set the API server's address for the kubelet of this host, and restart the kubelet",
		Long: `Sets the server of every cluster in kubernetes/kubelet.conf, and with --admin also in
kubernetes/admin.conf. Everything else in the files is kept, and so are mode and owner. Then the
command restarts the kubelet over D-Bus, and waits until it has been active for some seconds.

The command checks its preconditions before it changes anything, and may be run again. It needs
neither the cluster nor an operator, and writes to no journal.`,
		Example: `  ekco set-kubeconfig-server --server=https://localhost:6444
  ekco set-kubeconfig-server --server=https://lb.example.com --admin --host-etc-dir=/host/etc`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if server == "" {
				return usagef("give the API server's address: --server=https://localhost:6444")
			}
			if err := kubeconfig.CheckServer(server); err != nil {
				return usageError{err}
			}
			_, err := a.setKubeconfigServer(cmd.Context(), etc, kubeconfigNames(admin), server)
			return withRootAdvice(err)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "the API server's `address`, with its scheme (required)")
	cmd.Flags().StringVar(&etc, "host-etc-dir", "/etc", "the host's /etc")
	cmd.Flags().BoolVar(&admin, "admin", false, "also set the server in admin.conf, which primaries have")
	complete(cmd, "server", noCompletion)
	return cmd
}

// hostTaskKubeconfigs is the hidden command with which a host task points a kubelet to another server.
const hostTaskKubeconfigs = "set-kubeconfig-server"

// newHostTaskKubeconfigsCommand returns the command that sets the server from the pod of a host task and reports the
// result.
func newHostTaskKubeconfigsCommand(a *app) *cobra.Command {
	var server, etc string
	var admin, confirm bool
	cmd := &cobra.Command{
		Use: hostTaskKubeconfigs, Hidden: true, Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			change := a.setKubeconfigServer
			if confirm {
				change = a.moveKubelet
			}
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			set, err := change(ctx, etc, kubeconfigNames(admin), server)
			for i, file := range set.Files { // use the paths on the host
				if of, within := strings.CutPrefix(file.Path, etc); within {
					set.Files[i].Path = "/etc" + of
				}
			}
			return hosttask.Say(cmd.OutOrStdout(), set, err)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "the API server's address")
	cmd.Flags().StringVar(&etc, "host-etc-dir", "/host/etc", "the host's /etc")
	cmd.Flags().BoolVar(&admin, "admin", false, "also set the server in admin.conf")
	cmd.Flags().BoolVar(&confirm, strings.TrimPrefix(actionsbalancer.Confirm, "--"), false, "restore the former server if the kubelet does not work with the new one")
	return cmd
}

// kubeconfigNames returns the kubeconfigs in which the server is set. Other kubeconfigs on a primary name that
// primary's own API server.
func kubeconfigNames(admin bool) []string {
	if admin {
		return []string{"kubelet.conf", "admin.conf"}
	}
	return []string{"kubelet.conf"}
}

// withRootAdvice adds advice to an error about a missing permission.
func withRootAdvice(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w; run this as root", err)
	}
	return err
}

// setKubeconfigServer sets the server in kubeconfigs and restarts the kubelet. It returns the new settings even if the
// kubelet does not become active.
func (a *app) setKubeconfigServer(ctx context.Context, etc string, names []string, server string) (set journal.KubeconfigsSet, err error) {
	files, err := kubeconfigFiles(etc, names, server)
	if err != nil {
		return set, err
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	host, unit, err := a.kubeletUnit(ctx)
	if err != nil {
		return set, err
	}
	defer host.Close()
	for _, file := range files {
		changed, err := a.setServer(file, server)
		if err != nil {
			return set, err
		}
		set.Files = append(set.Files, changed...)
	}
	if err := unit.Restart(ctx); err != nil {
		return set, fmt.Errorf("the server is set; run this again when the kubelet can be restarted: %w", err)
	}
	if err := kubeconfig.RemoveFormer(files); err != nil {
		return set, err
	}
	_, err = fmt.Fprintf(a.stdout, "%s is restarted, and active\n", kubelet)
	return set, err
}

// kubeconfigFiles opens the kubeconfigs. It returns an error if the server cannot be set in one of them.
func kubeconfigFiles(etc string, names []string, server string) (files []kubeconfig.File, err error) {
	for _, name := range names {
		file, err := kubeconfig.In(etc, name)
		if err == nil {
			err = file.Check(server)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// kubeletUnit connects to systemd and returns the unit of the host's kubelet. The caller must close the connection.
func (a *app) kubeletUnit(ctx context.Context) (*systemd.Systemd, *systemd.Unit, error) {
	address, _ := a.env(envSystemBus)
	host, err := systemd.Connect(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	host.MinActiveTime = a.kubeletMinActiveTime
	unit, err := host.Unit(ctx, kubelet)
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return host, unit, nil
}

// moveKubelet sets the server like setKubeconfigServer. If the kubelet does not work with the new server, it restores
// the former server.
func (a *app) moveKubelet(ctx context.Context, etc string, names []string, server string) (set journal.KubeconfigsSet, err error) {
	files, err := kubeconfigFiles(etc, names, server)
	if err != nil {
		return set, err
	}
	node, _ := a.env(hosttask.EnvNode)
	if node == "" {
		return set, fmt.Errorf("%s is not set, want the name of the node", hosttask.EnvNode)
	}
	restart := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
		defer cancel()
		host, unit, err := a.kubeletUnit(ctx)
		if err != nil {
			return err
		}
		return errors.Join(unit.Restart(ctx), host.Close())
	}
	connected, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	host, _, err := a.kubeletUnit(connected)
	if err != nil {
		return set, err
	}
	if err := host.Close(); err != nil {
		return set, err
	}
	changes, err := kubeconfig.Move{
		Files: files, Server: server, Restart: restart,
		LeaseRenewed: func(ctx context.Context, server string) (time.Time, error) {
			return files[0].LeaseRenewed(ctx, server, node)
		},
	}.Do(ctx)
	for i, file := range changes {
		for _, change := range file {
			set.Files = append(set.Files, journal.KubeconfigSet{Path: files[i].Path, Cluster: change.Cluster, From: change.From})
		}
	}
	return set, err
}

// setServer sets the server in a kubeconfig, and returns the clusters with their former servers.
func (a *app) setServer(file kubeconfig.File, server string) (set []journal.KubeconfigSet, err error) {
	changes, err := file.SetServer(server)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		had := fmt.Sprintf(", had %q", change.From)
		if change.From == server {
			had = " already"
		}
		if _, err := fmt.Fprintf(a.stdout, "%s: cluster %q has server %s%s\n", file.Path, change.Cluster, server, had); err != nil {
			return set, err
		}
		set = append(set, journal.KubeconfigSet{Path: file.Path, Cluster: change.Cluster, From: change.From})
	}
	return set, nil
}
