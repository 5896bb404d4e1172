package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

// These are the intervals and limits of the housekeeping.
const (
	// measureInterval is how often EKCO measures the journal.
	measureInterval = time.Minute
	// firstRetentionAfter is the time from the start to the first retention. It is short, so that an operator that
	// restarts every day still runs the retention.
	firstRetentionAfter = 10 * time.Minute
	retainEvery         = 24 * time.Hour
	// shrinkInterval is the time to the next attempt if the last attempt failed, or did not make the journal small
	// enough. Each attempt reads the whole journal.
	shrinkInterval = time.Hour
	// Exports and damaged files are kept asideAges times as long as events. All exports together may use asideSizes
	// times the maximum size of the journal, and so may all damaged files together.
	asideAges, asideSizes = 4, 2
)

// housekeeper limits the size of the journal and of the files next to it.
type housekeeper struct {
	cfg config.Config
	// needed returns a function that reports which events must stay; see [ring.Ring.Needed].
	needed func(ctx context.Context) (func(journal.Event) bool, error)
	// mayPrune reports whether files may be deleted; see [ring.Ring.MayPrune].
	mayPrune func(ctx context.Context) (bool, error)
	store    *bolt.Store
	metrics  *api.Metrics
	log      *slog.Logger
	// retain is the time of the next retention; shrink is the time of the next attempt to make the journal smaller.
	retain, shrink time.Time
}

// run moves old events into an export: soon after the start, then once a day, and at once if the journal is too large.
// It also reports the journal's size.
func (h *housekeeper) run(ctx context.Context) error {
	h.retain = time.Now().Add(firstRetentionAfter)
	tick := time.NewTicker(measureInterval)
	defer tick.Stop()
	for {
		h.measureJournal(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// measureJournal measures the journal, and makes it smaller if it is too large.
func (h *housekeeper) measureJournal(ctx context.Context) {
	stat, err := h.store.Stat(ctx)
	if err != nil {
		return // the journal is closed or unreadable; other code reports that
	}
	h.metrics.JournalSize(stat.Bytes)
	now := time.Now()
	if now.Before(h.retain) && (!h.isTooLarge(stat) || now.Before(h.shrink)) {
		return
	}
	if !now.Before(h.retain) {
		h.retain = now.Add(retainEvery)
	}
	if err := h.pruneFiles(ctx); err != nil && ctx.Err() == nil { // do this first, to free space for an export
		h.log.Warn("cannot remove old exports and damaged journals; EKCO retries later", "error", err)
	}
	if err := h.exportOld(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("cannot move old events out of the journal; EKCO retries later", "error", err)
		h.shrink = now.Add(shrinkInterval)
		return
	}
	if stat, err = h.store.Stat(ctx); err == nil && h.isTooLarge(stat) {
		h.log.Warn("the journal is larger than journal_max_size, but EKCO needs all of its events: those of open or recent actions, and the latest of each node",
			"bytes", stat.Bytes-stat.FreeBytes, "journal_max_size", h.cfg.JournalMaxSize)
		h.shrink = now.Add(shrinkInterval)
	}
}

func (h *housekeeper) isTooLarge(stat journal.Stat) bool {
	limit := int64(h.cfg.JournalMaxSize)
	return limit > 0 && stat.Bytes-stat.FreeBytes > limit
}

// exportOld moves events that exceed the age or size limit into an export. It compacts the file if half of the file is
// free.
func (h *housekeeper) exportOld(ctx context.Context) error {
	keep, err := h.needed(ctx)
	if err != nil {
		return err
	}
	_, err = h.store.Retain(ctx, bolt.RetainOptions{
		Before: time.Now().Add(-h.cfg.JournalRetention), MaxBytes: int64(h.cfg.JournalMaxSize), Keep: keep,
	})
	if errors.Is(err, journal.ErrNoSnapshot) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, err := h.store.Stat(ctx)
	if err != nil || stat.FreeBytes < stat.Bytes/2 {
		return err
	}
	_, _, err = h.store.Compact(ctx)
	return err
}

// pruneFiles deletes exports and damaged journals that exceed the age or size limit.
func (h *housekeeper) pruneFiles(ctx context.Context) error {
	if may, err := h.mayPrune(ctx); err != nil || !may {
		return err
	}
	return h.store.Prune(ctx, bolt.PruneOptions{
		Before:   time.Now().Add(-asideAges * min(h.cfg.JournalRetention, math.MaxInt64/asideAges)),
		MaxBytes: asideSizes * min(int64(h.cfg.JournalMaxSize), math.MaxInt64/asideSizes),
	})
}

// journalChildCommand is the hidden command that reads a file in a child process, because a damaged file can crash the
// reader.
const journalChildCommand = "journal-child"

func newJournalChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: journalChildCommand, Hidden: true, DisableFlagParsing: true, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := rescue.Child(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != 0 {
				return exitError(code)
			}
			return nil
		},
	}
}
