package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/ring"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// retainFirst is when old events are looked for first: soon, because an
// operator that is restarted every day would never come to it otherwise.
const retainFirst = 10 * time.Minute

// keepHouse moves old events into an export, soon after the start and then once
// a day, and reports the journal's size meanwhile.
func keepHouse(ctx context.Context, cfg config.Config, running *ring.Ring, store *bolt.Store, metrics *api.Metrics, log *slog.Logger) error {
	size := time.NewTicker(time.Minute)
	defer size.Stop()
	retention := time.NewTimer(retainFirst)
	defer retention.Stop()
	for {
		if stat, err := store.Stat(ctx); err == nil {
			metrics.JournalSize(stat.Bytes)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-size.C:
		case <-retention.C:
			retention.Reset(24 * time.Hour)
			if err := retain(ctx, cfg, running, store); err != nil && ctx.Err() == nil {
				log.Warn("old events stay in the journal; tried again tomorrow", "error", err)
			}
		}
	}
}

// retain moves events past the retention time into an export, and gives the
// space back when half of the file is free.
func retain(ctx context.Context, cfg config.Config, running *ring.Ring, store *bolt.Store) error {
	keep, err := running.Needed(ctx)
	if err != nil {
		return err
	}
	_, err = store.Retain(ctx, bolt.RetainOptions{Before: time.Now().Add(-cfg.JournalRetention), Keep: keep})
	if errors.Is(err, journal.ErrNoSnapshot) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, err := store.Stat(ctx)
	if err != nil || stat.FreeBytes < stat.Bytes/2 {
		return err
	}
	_, _, err = store.Compact(ctx)
	return err
}

// journalChildCommand is the hidden command under which the binary reads a file
// that may be damaged, in a process of its own.
const journalChildCommand = "journal-child"

func newJournalChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: journalChildCommand, Hidden: true, DisableFlagParsing: true, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := bolt.Child(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
}
