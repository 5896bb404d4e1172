package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// inOwnPod reports whether the operator uses the service account of its pod. Then the journal's volume belongs to this
// operator alone, so it may replace a journal of another cluster. A command, or an operator with a kubeconfig, may have
// the wrong cluster or path.
func inOwnPod(cfg config.Config) bool { return cfg.Kubeconfig == "" && kube.InPod() }

// cannotBeJournal reports whether an error means that the file can never be the journal of this cluster. An operator
// that exited with such an error would be restarted forever.
func cannotBeJournal(err error) bool {
	return errors.Is(err, journal.ErrOtherCluster) || errors.Is(err, journal.ErrNotAJournal)
}

// replaceJournal renames the file that caused the error, and creates a new journal in its place.
func replaceJournal(ctx context.Context, cfg config.Config, cause error, log *slog.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	cluster := ""
	if other, ok := errors.AsType[*journal.OtherClusterError](cause); ok {
		cluster = other.Asked
	}
	options := bolt.Options{Child: []string{self, journalChildCommand}, OwnPath: true}
	replaced, err := bolt.Begin(ctx, cfg.Journal, options, cluster)
	if err != nil {
		return errors.Join(cause, err)
	}
	log.Warn("the file at the journal's path is not the journal of this cluster: EKCO renamed it and created a new journal",
		"problem", replaced.Problem, "set_aside", replaced.File, "journal", cfg.Journal)
	return nil
}
