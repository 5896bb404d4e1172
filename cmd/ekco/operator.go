package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

func newOperatorCommand(a *app) *cobra.Command {
	var check string
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run EKCO",
		Long: `Watches the cluster's nodes, frees pods that are stuck on lost ones, and purges
lost nodes on request, or automatically if purge_dead_nodes is true.

Every setting is a key of the configuration file, a flag, and an environment
variable with the key's name in upper case. SIGTERM stops the operator within 10
seconds; the next start continues open actions.

--check-config only checks a file: it reports every invalid value, and exits with 2
if there is one, or with 1 if it cannot read the file.`,
		Example: `  # in a pod, with /etc/ekco/config.yaml
  ekco operator

  # outside the cluster, to see what it would do
  ekco operator --kubeconfig /etc/kubernetes/admin.conf --journal ./journal.db --dry-run

  # to check a file without starting an operator
  ekco operator --check-config config.yaml`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("check-config") {
				return a.checkConfig(check)
			}
			cfg, log, err := a.loadConfig(cmd)
			if err != nil {
				return err
			}
			return runOperator(cmd.Context(), cfg, log)
		},
	}
	cmd.Flags().StringVar(&check, "check-config", "", "check this configuration file and exit; the environment and other flags are ignored")
	config.RegisterOperatorFlags(cmd.Flags())
	return cmd
}

// memoryTarget is the heap size above which Go collects garbage more often. It is below kURL's limit of 128 MiB, so
// that the process is not killed.
const memoryTarget = 96 << 20

func runOperator(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryTarget)
	}
	ctx, stopSignals := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stopSignals()
	if undone := cfg.Undone(); undone != "" {
		log.Warn(undone)
	}
	err := operate(ctx, cfg, log)
	if cannotBeJournal(err) && inOwnPod(cfg) {
		if err = replaceJournal(ctx, cfg, err, log); err == nil {
			err = operate(ctx, cfg, log)
		}
	}
	switch {
	case errors.Is(err, journal.ErrLocked):
		return fmt.Errorf("%w; only one EKCO can use the journal: stop the other one first", err)
	case err != nil && !errors.Is(err, context.Canceled):
		return err
	}
	log.Info("EKCO has stopped")
	return nil
}

// operate runs the operator until ctx ends or the operator fails.
func operate(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	_, done, stop, err := startRing(ctx, cfg, ringOptions{}, log)
	if err != nil {
		return err
	}
	log.Info("EKCO runs", "journal", cfg.Journal, "socket", cfg.Socket(), "dry_run", cfg.DryRun)
	<-done
	return stop()
}
