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

// inOwnPod reports whether the operator asks the cluster that it runs in, by the
// service account of its pod. Then it cannot be that a journal is of another
// cluster because somebody named the wrong one, and the path is that of a volume
// which is there for the journal. A command, or an operator with a kubeconfig, can
// be wrong about either.
func inOwnPod(cfg config.Config) bool { return cfg.Kubeconfig == "" && kube.InPod() }

// isStrange reports whether the error is that of a file which is not the journal
// of this cluster, and never will be: an operator that ended because of it would be
// started again for ever.
func isStrange(err error) bool {
	return errors.Is(err, journal.ErrOtherCluster) || errors.Is(err, journal.ErrNotAJournal)
}

// beginAnew sets the file aside that the error is about, and begins a journal in
// its place.
func beginAnew(ctx context.Context, cfg config.Config, strange error, log *slog.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	cluster := ""
	if other, ok := errors.AsType[*journal.OtherClusterError](strange); ok {
		cluster = other.Asked
	}
	options := bolt.Options{Child: []string{self, journalChildCommand}, OwnPath: true}
	replaced, err := bolt.Begin(ctx, cfg.Journal, options, cluster)
	if err != nil {
		return errors.Join(strange, err)
	}
	log.Warn("what is at the journal's path is not the journal of this cluster: it was set aside, and a new journal begun",
		"problem", replaced.Problem, "set_aside", replaced.File, "journal", cfg.Journal)
	return nil
}
