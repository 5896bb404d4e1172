package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	actionscertificates "github.com/replicatedhq/ekco/actions/certificates"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/hosttask"
)

// These are the commands of host tasks for certificates.
const (
	hostTaskLook   = "read-certs"
	hostTaskRotate = "rotate-certs"
)

// primariesOf returns the store of the certificates of control planes.
func primariesOf(c cluster) *primaries.Store {
	options := primaries.Options{Nodes: c.kube, Objects: c.objects, Namespace: c.cfg.RotateCertsNamespace}
	if c.kube != nil {
		options.ServerTime = c.kube.ServerTime
	}
	return primaries.New(options)
}

func primariesActions(c cluster, store *primaries.Store, seen func(), clock func() error) actionscertificates.Primaries {
	ttl := "--ttl=" + c.cfg.RotateCertsTTL.String()
	return actionscertificates.Primaries{
		Tasks: c.renewalTasks, Servers: store, Attempts: store, Image: c.cfg.RotateCertsImage,
		Look:   []string{hostTaskCommand, hostTaskLook, ttl},
		Rotate: []string{hostTaskCommand, hostTaskRotate, ttl, "--patience=" + actionscertificates.RotatePatience.String()},
		Seen:   store.Seeing(seen), Clock: clock,
	}
}

// addCertificateTasks adds the hidden commands that host tasks for certificates run.
func addCertificateTasks(a *app, to *cobra.Command) {
	var of rotateCerts
	look := &cobra.Command{
		Use: hostTaskLook, Hidden: true, Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return hosttask.Say(cmd.OutOrStdout(), primary.Look(of.dir, of.ttl, a.now(), fsmcertificates.IsDue), nil)
		},
	}
	rotate := &cobra.Command{
		Use: hostTaskRotate, Hidden: true, Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.flagsFromEnvironment(cmd, &of); err != nil {
				return err
			}
			result, err := a.rotateInTask(cmd.Context(), of)
			return hosttask.Say(cmd.OutOrStdout(), result, err)
		},
	}
	for _, cmd := range []*cobra.Command{look, rotate} {
		cmd.Flags().DurationVar(&of.ttl, "ttl", 180*24*time.Hour, "")
		cmd.Flags().StringVar(&of.hostname, "hostname", "", "")
		cmd.Flags().StringVar(&of.dir, "dir", kubernetesDir, "")
		cmd.Flags().StringVar(&of.logs, "pod-logs", primary.Logs, "")
		cmd.Flags().DurationVar(&of.patience, "patience", actionscertificates.RotatePatience, "")
		to.AddCommand(cmd)
	}
}

// rotateInTask renews certificates as "ekco rotate-certs" does.
func (a *app) rotateInTask(ctx context.Context, of rotateCerts) (any, error) {
	result, err := a.rotate(ctx, of)
	if err := result.TaskError(err); err != nil {
		return nil, err
	}
	return of.rotation(a).Renewed(result), nil
}
