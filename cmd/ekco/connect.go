package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

// connection is how a command reaches the journal.
type connection struct {
	api.Backend
	// running is set when an operator answers; else the file is read.
	running bool
	close   func()
	// again reaches the operator again after it went away.
	again func(ctx context.Context) (operator, error)
}

// connect reaches the operator that holds the journal, or else the file.
func (a *app) connect(ctx context.Context, cmd *cobra.Command) (*connection, error) {
	cfg, err := a.settings(cmd, "journal", "log_level")
	if err != nil {
		return nil, err
	}
	reached, err := a.reach(ctx, cfg)
	if err == nil {
		again := func(ctx context.Context) (operator, error) { return a.reach(ctx, cfg) }
		return &connection{Backend: reached, running: true, close: reached.Close, again: again}, nil
	}
	if !errors.Is(err, api.ErrNoOperator) {
		return nil, err
	}
	file, err := a.file(cfg)
	if err != nil {
		return nil, err
	}
	// It was only read: an error of closing it loses nothing.
	return &connection{Backend: file, close: func() { _ = file.Close() }}, nil
}

// lockPatience is how long a question waits for a process that holds the
// journal and does not listen yet, or no longer.
const lockPatience = 2 * time.Second

// with connects for as long as use runs, which may put another connection in
// the place of the first. It is run again if it found the journal held by a
// process that does not listen: it cannot have done or said anything then.
func (a *app) with(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	wait, cancel := context.WithTimeout(ctx, min(a.holderPatience, lockPatience))
	defer cancel()
	tick := time.NewTicker(holderRetry)
	defer tick.Stop()
	for {
		err := a.withNow(ctx, cmd, use)
		if !errors.Is(err, journal.ErrLocked) || errors.Is(err, api.ErrNoAnswer) {
			return err
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return held(err)
		}
	}
}

// withNow is one try of with.
func (a *app) withNow(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	backend, err := a.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { backend.close() }()
	a.unread.ends.Store(true)
	return use(backend)
}

// withStatus shows the status that the operator, or the file, tells.
func (a *app) withStatus(cmd *cobra.Command, show func(api.Status) error) error {
	return a.with(cmd.Context(), cmd, func(backend *connection) error {
		status, err := backend.Status(cmd.Context())
		if err != nil {
			return err
		}
		api.Judge(&status, a.words.Verb)
		return show(status)
	})
}

// reach dials the operator. Its error wraps ErrNoOperator when nobody listens.
func (a *app) reach(ctx context.Context, cfg config.Config) (operator, error) {
	reached, err := a.dial(ctx, cfg.Socket())
	switch {
	case errors.Is(err, api.ErrNoAnswer):
		return nil, a.explainSilence(ctx, cfg, err)
	case errors.Is(err, api.ErrForbidden):
		return nil, fmt.Errorf("%w; run this as root", err)
	}
	return reached, err
}

const (
	// returnPatience is how long an operator that went away may take to return.
	returnPatience = 2 * time.Minute
	returnRetry    = time.Second
)

// awaitOperator dials until an operator answers, or nobody ever will.
func awaitOperator(ctx context.Context, dial func(context.Context) (operator, error)) (operator, error) {
	ctx, cancel := context.WithTimeout(ctx, returnPatience)
	defer cancel()
	tick := time.NewTicker(returnRetry)
	defer tick.Stop()
	for {
		back, err := dial(ctx)
		if err == nil || errors.Is(err, errWorkerLeft) {
			return back, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// explainSilence adds who holds the journal to the error that nobody answers.
func (a *app) explainSilence(ctx context.Context, cfg config.Config, silence error) error {
	file, err := a.file(cfg)
	if err != nil {
		return errors.Join(silence, err)
	}
	_, err = file.Status(ctx)
	if errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("%w; %w; %s", silence, err, restartPod)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w; %w", silence, err)
	}
	return fmt.Errorf("%w, and nobody holds the journal; look for the process that holds %s", silence, cfg.Socket())
}

// free returns an error that wraps ErrLocked while a process holds the journal.
func (a *app) free(ctx context.Context, cfg config.Config) error {
	file, err := a.file(cfg)
	if err != nil {
		return err
	}
	_, err = file.Status(ctx)
	return errors.Join(err, file.Close())
}

// file serves commands from the journal's file.
func (a *app) file(cfg config.Config) (*offline.Backend, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the ekco binary, which reads the journal in a child: %w", err)
	}
	return offline.New(cfg.Journal, capabilities(cluster{}).Machines(), []string{self, journalChildCommand}, verifyInChild(self)), nil
}

// restartPod is what to do about an operator that hangs.
const restartPod = "restart its pod (kubectl -n kurl rollout restart deploy/ekc-operator): what is open goes on after that"

// held explains an error of reading the file: an operator that has just
// started, or one that does not serve its socket, holds it.
func held(err error) error {
	if errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("%w, which does not listen on the socket next to it; an operator listens a moment after its start: "+
			"try again, and if that does not help, %s", err, restartPod)
	}
	return err
}
