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

// withWarned is [app.withConnection] for a command that prints events. It warns on standard error if the journal cannot
// be written, because the output may then be incomplete.
func (a *app) withWarned(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	return a.withConnection(ctx, cmd, func(backend *connection) error {
		if trouble := journalTrouble(ctx, backend); trouble != "" {
			_, _ = fmt.Fprintf(a.stderr, "warning: %s. What has happened since is not recorded.\n", trouble)
		}
		return use(backend)
	})
}

// journalTrouble returns since when and why the journal cannot be written. It returns "" if the journal can be
// written, or if the status cannot be read.
func journalTrouble(ctx context.Context, backend api.Backend) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return ""
	}
	return view.Unwritable(status.Journal, status.Now)
}

// watchTrouble prints to standard error when the journal can no longer be written, and when it can be written again.
// The user sees no events in between. watchTrouble runs until stop is called.
func (a *app) watchTrouble(ctx context.Context, backend api.Backend, sign *statusLine) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(troubleCheckAfter)
		defer tick.Stop()
		for before := journalTrouble(ctx, backend) != ""; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			trouble := journalTrouble(ctx, backend)
			if now := trouble != ""; now != before && ctx.Err() == nil {
				before = now
				if !now {
					trouble = "the journal can be written again"
				}
				_ = sign.printAbove(func() error {
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
	// troubleCheckAfter is how long an action must be without events before the command checks whether the journal can
	// be written. troubleCheckInterval is the interval of further checks.
	troubleCheckAfter    = 2 * time.Second
	troubleCheckInterval = 5 * time.Second
)

// printTrouble prints that the journal cannot be written, because the user then sees no events. It also prints the
// result that could not be recorded.
func (f *follower) printTrouble(ctx context.Context) {
	now := f.app.now()
	if now.Sub(f.lastNews) < troubleCheckAfter || now.Sub(f.asked) < troubleCheckInterval {
		return
	}
	f.asked = now
	status, err := f.backend.Status(ctx)
	if err != nil {
		return // the stream reports the lost operator
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
	f.print("          nothing more is done until the journal can be written; free space on its file system, or make it writable again: the purge then continues automatically")
}

// refuseQuestion returns an error if EKCO could not record an answer.
func (p *purger) refuseQuestion(ctx context.Context) error {
	if trouble := journalTrouble(ctx, p.backend); trouble != "" {
		return fmt.Errorf("node %s is not purged: %s; nothing was changed; free space on its file system, or make it writable again", p.flags.node, trouble)
	}
	return nil
}
