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

// errWorkerLeft is the error if another command did the work and ended before the purge had ended.
var errWorkerLeft = errors.New("the command that did the work has ended before it was done")

// holderRetry is how often to dial the process that has the journal open.
const holderRetry = 100 * time.Millisecond

// connectOrBecomeWorker connects to the process that does the work: an operator or another command that answers on the
// socket. If there is none, this process does the work. It waits for a process that has the journal open but does not
// listen.
func (p *purger) connectOrBecomeWorker(ctx context.Context, cfg config.Config, log *slog.Logger) (release func() error, err error) {
	wait, cancel := context.WithTimeout(ctx, p.app.holderTimeout)
	defer cancel()
	tick := time.NewTicker(holderRetry)
	defer tick.Stop()
	for said := false; ; said = true {
		release, err = p.tryConnectOrBecomeWorker(ctx, cfg, log)
		if !errors.Is(err, journal.ErrLocked) || errors.Is(err, api.ErrNoAnswer) {
			return release, err
		}
		if !said {
			p.warn("A process holds the journal and does not listen on the socket next to it; waiting for it.")
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return nil, interrupted(ctx, lockedError(err), "nothing was changed")
		}
	}
}

// tryConnectOrBecomeWorker makes one attempt of connectOrBecomeWorker.
func (p *purger) tryConnectOrBecomeWorker(ctx context.Context, cfg config.Config, log *slog.Logger) (release func() error, err error) {
	reached, err := p.app.dialOperator(ctx, cfg)
	switch {
	case err == nil:
		p.backend, p.ended, p.doesWorkItself = reached, nil, false
		p.app.unread.mayEnd.Store(true)
		p.workerIsCommand = servedByCommand(ctx, reached)
		return func() error { reached.Close(); return nil }, nil
	case !errors.Is(err, api.ErrNoOperator):
		return nil, err
	case p.flags.noWait:
		if err := p.app.requireUnlocked(ctx, cfg); errors.Is(err, journal.ErrLocked) {
			return nil, err
		}
		return nil, usagef("--no-wait needs a running operator, and no operator listens on %s; without --no-wait, this command does the work itself", cfg.Socket())
	}
	options := ringOptions{OneShot: true, Node: p.flags.node, DryRun: p.flags.dryRun, WithoutOperator: p.flags.withoutOperator}
	backend, ended, stop, err := p.app.work(ctx, cfg, options, quieter(log, cfg))
	if err != nil {
		return nil, err
	}
	p.backend, p.ended, p.doesWorkItself, p.workerIsCommand = backend, ended, true, false
	p.app.unread.mayEnd.Store(false)
	if p.flags.dryRun {
		p.warn("No operator runs; this command reads the cluster itself, and changes nothing.")
	} else {
		p.print("No operator runs; this command does the work itself.")
	}
	return stop, nil
}

// servedByCommand reports whether the answering process is a command, which ends after its work, and not an operator.
// It returns false if the status cannot be read.
func servedByCommand(ctx context.Context, reached api.Backend) bool {
	status, err := reached.Status(ctx)
	return err == nil && !status.Operator.Running
}
