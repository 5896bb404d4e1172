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

// Intervals and limits of the housekeeping.
const (
	// lookEvery is how often the journal is measured.
	lookEvery = time.Minute
	// retainFirst is the time until the first retention: short, so that an operator that restarts every day gets to
	// it.
	retainFirst = 10 * time.Minute
	retainEvery = 24 * time.Hour
	// shrinkAgain is the time until the next attempt if a journal is too large and no more events may leave it: an
	// attempt reads all of it.
	shrinkAgain = time.Hour
	// Exports and damaged files stay this many times as long as events, and each of the two kinds may have this many
	// times the maximum size of the journal.
	asideAges, asideSizes = 4, 2
)

// house limits the size of the journal and of the files next to it.
type house struct {
	cfg config.Config
	// needed returns which events must stay; see [ring.Ring.Needed].
	needed func(ctx context.Context) (func(journal.Event) bool, error)
	// mayPrune reports whether files may be removed; see [ring.Ring.MayPrune].
	mayPrune func(ctx context.Context) (bool, error)
	store    *bolt.Store
	metrics  *api.Metrics
	log      *slog.Logger
	// retain and shrink are the times of the next retention and of the next attempt to shrink.
	retain, shrink time.Time
}

// keep moves old events into an export, soon after the start and then once a day, or at once if the journal is too
// large. It also reports the journal's size.
func (h *house) keep(ctx context.Context) error {
	h.retain = time.Now().Add(retainFirst)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		h.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look measures the journal, and makes it smaller if necessary.
func (h *house) look(ctx context.Context) {
	stat, err := h.store.Stat(ctx)
	if err != nil {
		return // it is closed, or cannot be read, which other parts report
	}
	h.metrics.JournalSize(stat.Bytes)
	now := time.Now()
	if now.Before(h.retain) && (!h.tooLarge(stat) || now.Before(h.shrink)) {
		return
	}
	if !now.Before(h.retain) {
		h.retain = now.Add(retainEvery)
	}
	if err := h.prune(ctx); err != nil && ctx.Err() == nil { // first, to free space for an export
		h.log.Warn("cannot remove old exports and damaged journals; EKCO retries later", "error", err)
	}
	if err := h.clearOut(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("cannot move old events out of the journal; EKCO retries later", "error", err)
		h.shrink = now.Add(shrinkAgain)
		return
	}
	if stat, err = h.store.Stat(ctx); err == nil && h.tooLarge(stat) {
		h.log.Warn("the journal is larger than journal_max_size, but EKCO needs all of its events: those of open or recent actions, and the latest of each node",
			"bytes", stat.Bytes-stat.FreeBytes, "journal_max_size", h.cfg.JournalMaxSize)
		h.shrink = now.Add(shrinkAgain)
	}
}

func (h *house) tooLarge(stat journal.Stat) bool {
	limit := int64(h.cfg.JournalMaxSize)
	return limit > 0 && stat.Bytes-stat.FreeBytes > limit
}

// clearOut moves events that are too old, or too many, into an export. It compacts the file if half of it is free.
func (h *house) clearOut(ctx context.Context) error {
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

// prune removes exports and damaged journals that are too old or too large.
func (h *house) prune(ctx context.Context) error {
	if may, err := h.mayPrune(ctx); err != nil || !may {
		return err
	}
	return h.store.Prune(ctx, bolt.PruneOptions{
		Before:   time.Now().Add(-asideAges * min(h.cfg.JournalRetention, math.MaxInt64/asideAges)),
		MaxBytes: asideSizes * min(int64(h.cfg.JournalMaxSize), math.MaxInt64/asideSizes),
	})
}

// journalChildCommand is the hidden command that reads a file in another process, since a damaged file can crash it.
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
