package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

// errWorkerLeft says that another command did the work, and ended before it.
var errWorkerLeft = errors.New("the command that did the work has ended before it was done")

// holderRetry is how often a process that holds the journal is looked for on
// its socket.
const holderRetry = 100 * time.Millisecond

// engage finds who does the work: an operator or another command that answers
// on the socket, or else this process. A journal is held for a moment before
// its holder listens, and after it has stopped to: that is waited for.
func (p *purger) engage(ctx context.Context, cfg config.Config, log *slog.Logger) (release func() error, err error) {
	wait, cancel := context.WithTimeout(ctx, p.app.holderPatience)
	defer cancel()
	tick := time.NewTicker(holderRetry)
	defer tick.Stop()
	for said := false; ; said = true {
		release, err = p.engageNow(ctx, cfg, log)
		if !errors.Is(err, journal.ErrLocked) || errors.Is(err, api.ErrNoAnswer) {
			return release, err
		}
		if !said {
			p.warn("The journal is held by a process that does not listen on the socket next to it; waiting for it.")
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return nil, interrupted(ctx, held(err), "nothing was changed")
		}
	}
}

// engageNow is one try of engage.
func (p *purger) engageNow(ctx context.Context, cfg config.Config, log *slog.Logger) (release func() error, err error) {
	reached, err := p.app.reach(ctx, cfg)
	switch {
	case err == nil:
		p.backend, p.ended, p.alone = reached, nil, false
		p.app.unread.ends.Store(true)
		p.besideCommand = servedByCommand(ctx, reached)
		return func() error { reached.Close(); return nil }, nil
	case !errors.Is(err, api.ErrNoOperator):
		return nil, err
	case p.flags.noWait:
		if err := p.app.free(ctx, cfg); errors.Is(err, journal.ErrLocked) {
			return nil, err
		}
		return nil, usagef("--no-wait needs a running operator, and none listens on %s; leave it out, and this command does the work itself", cfg.Socket())
	}
	options := ringOptions{OneShot: true, Node: p.flags.node, DryRun: p.flags.dryRun}
	backend, ended, stop, err := p.app.work(ctx, cfg, options, quieter(log, cfg))
	if err != nil {
		return nil, err
	}
	p.backend, p.ended, p.alone, p.besideCommand = backend, ended, true, false
	p.app.unread.ends.Store(false)
	if p.flags.dryRun {
		p.warn("No operator runs; this command looks at the cluster itself, and changes nothing there.")
	} else {
		p.print("No operator runs; this command does the work itself.")
	}
	return stop, nil
}

// servedByCommand reports whether it is a command that answers, which ends with
// its work, and no operator. When in doubt it is an operator.
func servedByCommand(ctx context.Context, reached api.Backend) bool {
	status, err := reached.Status(ctx)
	return err == nil && !status.Operator.Running
}
