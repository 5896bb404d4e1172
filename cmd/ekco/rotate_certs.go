package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	actionscertificates "github.com/replicatedhq/ekco/actions/certificates"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/journal/words"
)

// kubernetesDir is kubeadm's directory.
const kubernetesDir = "/etc/kubernetes"

// rotateCerts has the flags of the command rotate-certs.
type rotateCerts struct {
	ttl      time.Duration
	hostname string
	dir      string
	logs     string
	patience time.Duration
	// isCommand is true for a person's command, and false for the operator's host task.
	isCommand bool
}

func newRotateCertsCommand(a *app) *cobra.Command {
	var of rotateCerts
	cmd := &cobra.Command{
		Use:   "rotate-certs",
		Short: "Renew the certificates of this primary's control plane",
		Long: `Renews those of kubeadm's certificates in /etc/kubernetes that expire within --ttl: those of
the API server, of its clients, of etcd, and in admin.conf, super-admin.conf,
controller-manager.conf and scheduler.conf, but not CAs and the kubelet's own certificates.
Subjects, names, usages and kinds of keys are kept; the keys are new.

The command creates and checks all new certificates before it replaces the first one. It restarts
the API server, the controller manager and the scheduler if a certificate of theirs is new, by an
annotation in their manifests. If one does not come back, its old certificates are restored. The
old files of the last three runs stay in /etc/kubernetes/ekco-certificates.

The command needs neither the cluster nor an operator, and writes to no journal, so it also works
after the certificates have expired. If it is interrupted, the next run continues. With a --ttl of
a year or more it renews everything each time. Run it on one primary after the other.

Exit codes: 0 all certificates that expire within --ttl are renewed; 1 something could not be renewed or
restarted; 2 the command line makes no sense.`,
		Example: `  ekco rotate-certs
  ekco rotate-certs --ttl=720h`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.flagsFromEnvironment(cmd, &of); err != nil {
				return err
			}
			of.isCommand = true
			if !cmd.Flags().Changed("patience") {
				of.patience = 0
			}
			_, err := a.rotate(cmd.Context(), of)
			return err
		},
	}
	cmd.Flags().DurationVar(&of.ttl, "ttl", 180*24*time.Hour, "renew certificates that expire within this `time`")
	cmd.Flags().StringVar(&of.hostname, "hostname", "", "`name` of this node, for the output (default: that of the host)")
	cmd.Flags().StringVar(&of.dir, "dir", kubernetesDir, "`directory` of Kubernetes")
	cmd.Flags().StringVar(&of.logs, "pod-logs", primary.Logs, "`directory` with the kubelet's logs of pods")
	cmd.Flags().DurationVar(&of.patience, "patience", actionscertificates.RotatePatience, "how long a component may take to come back, as a `time`; without it up to 11m, if its startup probe allows more")
	return cmd
}

// flagsFromEnvironment sets flags from the environment that are not on the command line.
func (a *app) flagsFromEnvironment(cmd *cobra.Command, of *rotateCerts) error {
	if text, set := a.env("TTL"); set && !cmd.Flags().Changed("ttl") {
		ttl, err := time.ParseDuration(text)
		if err != nil {
			return usagef("environment variable TTL is %q: want a time such as 4320h", text)
		}
		of.ttl = ttl
	}
	if of.ttl <= 0 {
		return usagef("--ttl is %s: want a time such as 4320h", of.ttl)
	}
	if of.patience <= 0 {
		return usagef("--patience is %s: want a time such as 5m", of.patience)
	}
	name, _ := a.env("HOSTNAME")
	of.hostname = cmp.Or(of.hostname, name)
	if of.hostname == "" {
		of.hostname, _ = os.Hostname() // it is only printed
	}
	return nil
}

func (of rotateCerts) rotation(a *app) primary.Rotation {
	return primary.Rotation{
		Dir: of.dir, TTL: of.ttl, IsDue: fsmcertificates.IsDue, ByHand: of.isCommand, Now: a.now, ServerTime: primary.ServerTime, Kubelet: primary.OnHost{Logs: of.logs}, Patience: of.patience,
	}
}

// rotate renews certificates on this host. Programs parse its output, whose lines begin with fixed words such as
// Rotated, Restarting, Missing or Error.
func (a *app) rotate(ctx context.Context, of rotateCerts) (primary.Result, error) {
	var lost error
	say := func(line string) {
		_, err := fmt.Fprintln(a.stdout, view.Clean(line))
		lost = cmp.Or(lost, err)
	}
	rotation := of.rotation(a)
	rotation.Say = say
	result, err := rotation.Run(ctx)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			say("Error: run this as root")
		}
		return result, exitError(exitFailed)
	}
	were, are := "were", "are"
	if len(result.Rotated) == 1 {
		were = "was"
	}
	if len(result.Missing) == 1 {
		are = "is"
	}
	say(fmt.Sprintf("Done on %s: %s %s renewed, %s restarted, %d %s missing", of.hostname,
		words.Count(len(result.Rotated), "certificate"), were, words.Count(len(result.Restarted), "component"), len(result.Missing), are))
	return result, lost
}
