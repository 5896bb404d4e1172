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

// When the house is kept.
const (
	// lookEvery is how often the journal is measured.
	lookEvery = time.Minute
	// retainFirst is when old events are looked for first: soon, because an
	// operator that is restarted every day would never come to it otherwise.
	retainFirst = 10 * time.Minute
	retainEvery = 24 * time.Hour
	// shrinkAgain is how long a journal that is too large rests when nothing more
	// may leave it: what may leave is found by reading all of it.
	shrinkAgain = time.Hour
	// Exports and damaged files stay so many times as long as events, and each kind may take so
	// many times the size of the journal.
	asideAges, asideSizes = 4, 2
)

// house is what keeps the journal, and what lies beside it, small.
type house struct {
	cfg config.Config
	// needed returns what must stay; see [ring.Ring.Needed].
	needed func(ctx context.Context) (func(journal.Event) bool, error)
	// mayPrune reports whether files may be removed; see [ring.Ring.MayPrune].
	mayPrune func(ctx context.Context) (bool, error)
	store    *bolt.Store
	metrics  *api.Metrics
	log      *slog.Logger
	// retain and shrink are when to do so next.
	retain, shrink time.Time
}

// keep moves old events into an export, soon after the start and then once a day,
// or at once when the journal becomes too large, and reports its size meanwhile.
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

// look measures the journal, and makes it smaller if that is due.
func (h *house) look(ctx context.Context) {
	stat, err := h.store.Stat(ctx)
	if err != nil {
		return // it is closed, or cannot be read, which others say
	}
	h.metrics.JournalSize(stat.Bytes)
	now := time.Now()
	if now.Before(h.retain) && (!h.tooLarge(stat) || now.Before(h.shrink)) {
		return
	}
	if !now.Before(h.retain) {
		h.retain = now.Add(retainEvery)
	}
	if err := h.prune(ctx); err != nil && ctx.Err() == nil { // first, so that there is space for an export
		h.log.Warn("old exports and damaged journals stay; tried again later", "error", err)
	}
	if err := h.clearOut(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("old events stay in the journal; tried again later", "error", err)
		h.shrink = now.Add(shrinkAgain)
		return
	}
	if stat, err = h.store.Stat(ctx); err == nil && h.tooLarge(stat) {
		h.log.Warn("the journal is larger than journal_max_size, and nothing more may leave it: the rest is of open or recent actions, or the last that is known of a node",
			"bytes", stat.Bytes-stat.FreeBytes, "journal_max_size", h.cfg.JournalMaxSize)
		h.shrink = now.Add(shrinkAgain)
	}
}

func (h *house) tooLarge(stat journal.Stat) bool {
	limit := int64(h.cfg.JournalMaxSize)
	return limit > 0 && stat.Bytes-stat.FreeBytes > limit
}

// clearOut moves events that are too old, or too many, into an export, and gives
// the space back when half of the file is free.
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

// prune removes exports and damaged journals that are too old, or take too much space.
func (h *house) prune(ctx context.Context) error {
	if may, err := h.mayPrune(ctx); err != nil || !may {
		return err
	}
	return h.store.Prune(ctx, bolt.PruneOptions{
		Before:   time.Now().Add(-asideAges * min(h.cfg.JournalRetention, math.MaxInt64/asideAges)),
		MaxBytes: asideSizes * min(int64(h.cfg.JournalMaxSize), math.MaxInt64/asideSizes),
	})
}

// journalChildCommand is the hidden command under which the binary reads a file
// that may be damaged, in a process of its own.
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
