package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	"github.com/replicatedhq/ekco/journal/words"
)

// withWarned is with for a command that shows events: it warns on standard error if the journal cannot be written,
// since the output may then be incomplete.
func (a *app) withWarned(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	return a.with(ctx, cmd, func(backend *connection) error {
		if trouble := troubleOf(ctx, backend); trouble != "" {
			_, _ = fmt.Fprintf(a.stderr, "warning: %s. What has happened since is not recorded.\n", trouble)
		}
		return use(backend)
	})
}

// troubleOf says since when and why the journal cannot be written; "" if it can, or without a status.
func troubleOf(ctx context.Context, backend api.Backend) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return ""
	}
	return view.Unwritable(status.Journal, status.Now)
}

// watchTrouble reports on standard error when the journal can no longer be written, and when it can again, until the
// returned function is called: there are no events in that time.
func (a *app) watchTrouble(ctx context.Context, backend api.Backend, sign *signOfLife) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(troubleShows)
		defer tick.Stop()
		for before := troubleOf(ctx, backend) != ""; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			trouble := troubleOf(ctx, backend)
			if now := trouble != ""; now != before && ctx.Err() == nil {
				before = now
				if !now {
					trouble = "the journal can be written again"
				}
				_ = sign.away(func() error {
					_, err := fmt.Fprintf(a.stderr, "ekco: %s\n", trouble)
					return err
				})
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

const (
	// troubleShows is how long an action must be without events before the command checks whether the journal can be
	// written; troubleAgain is the interval of further checks.
	troubleShows = 2 * time.Second
	troubleAgain = 5 * time.Second
)

// printTrouble prints that an action has no events because the journal cannot be written, and its result so far, for
// which there is no event.
func (f *follower) printTrouble(ctx context.Context) {
	now := f.app.now()
	if now.Sub(f.lastNews) < troubleShows || now.Sub(f.asked) < troubleAgain {
		return
	}
	f.asked = now
	status, err := f.backend.Status(ctx)
	if err != nil {
		return // the stream reports a lost operator
	}
	trouble := view.Unwritable(status.Journal, status.Now)
	if trouble == "" {
		if f.unrecorded != "" {
			f.sign.clear()
			f.print("%8s  the journal can be written again", words.Span(f.elapsed()))
		}
		f.unrecorded = ""
		return
	}
	what := status.Unrecorded[f.action]
	switch {
	case what != "":
		what += ", which is not recorded"
	case f.step != "":
		what = f.step + " has begun, and its result is not recorded"
	default:
		what = "nothing more is recorded"
	}
	if what == f.unrecorded {
		return
	}
	f.unrecorded = what
	f.sign.clear()
	f.print("%8s  %s: %s", words.Span(f.elapsed()), what, trouble)
	f.print("          nothing more is done until it can; free space on its file system, or make it writable again: the purge continues automatically")
}

// refuseQuestion returns an error if an answer could not be recorded.
func (p *purger) refuseQuestion(ctx context.Context) error {
	if trouble := troubleOf(ctx, p.backend); trouble != "" {
		return fmt.Errorf("node %s is not purged: %s; nothing was changed; free space on its file system, or make it writable again", p.flags.node, trouble)
	}
	return nil
}
