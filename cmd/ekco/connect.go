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

// connection is a command's access to the journal.
type connection struct {
	api.Backend
	// running is true if an operator answers; otherwise the command reads the file.
	running bool
	close   func()
	// redial reconnects to the operator after a lost connection.
	redial func(ctx context.Context) (operator, error)
}

// connect connects to the operator that has the journal open, or opens the file if no operator runs.
func (a *app) connect(ctx context.Context, cmd *cobra.Command) (*connection, error) {
	cfg, err := a.settings(cmd, "journal", "log_level")
	if err != nil {
		return nil, err
	}
	reached, err := a.dialOperator(ctx, cfg)
	if err == nil {
		redial := func(ctx context.Context) (operator, error) { return a.dialOperator(ctx, cfg) }
		return &connection{Backend: reached, running: true, close: reached.Close, redial: redial}, nil
	}
	if !errors.Is(err, api.ErrNoOperator) {
		return nil, err
	}
	file, err := a.fileBackend(cfg)
	if err != nil {
		return nil, err
	}
	// The file was only read, so an error on close loses nothing.
	return &connection{Backend: file, close: func() { _ = file.Close() }}, nil
}

// lockTimeout is how long a command waits for a process that has the journal open but does not listen.
const lockTimeout = 2 * time.Second

// withConnection connects, then calls use. It calls use again if a process has the journal open but does not listen,
// because use cannot have done anything then. use may replace the connection.
func (a *app) withConnection(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	wait, cancel := context.WithTimeout(ctx, min(a.holderTimeout, lockTimeout))
	defer cancel()
	tick := time.NewTicker(holderRetry)
	defer tick.Stop()
	for {
		err := a.tryWithConnection(ctx, cmd, use)
		if !errors.Is(err, journal.ErrLocked) || errors.Is(err, api.ErrNoAnswer) {
			return err
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return lockedError(err)
		}
	}
}

// tryWithConnection makes one attempt of withConnection.
func (a *app) tryWithConnection(ctx context.Context, cmd *cobra.Command, use func(*connection) error) error {
	backend, err := a.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { backend.close() }()
	a.unread.mayEnd.Store(true)
	return use(backend)
}

// withStatus reads the status of the operator or of the file, and shows it.
func (a *app) withStatus(cmd *cobra.Command, show func(api.Status) error) error {
	return a.withConnection(cmd.Context(), cmd, func(backend *connection) error {
		status, err := backend.Status(cmd.Context())
		if err != nil {
			return err
		}
		api.Judge(&status, a.words.Verb)
		return show(status)
	})
}

// dialOperator dials the operator. It returns ErrNoOperator if no process listens.
func (a *app) dialOperator(ctx context.Context, cfg config.Config) (operator, error) {
	reached, err := a.dial(ctx, cfg.Socket(), cfg.SpareSocket())
	switch {
	case errors.Is(err, api.ErrNoAnswer):
		return nil, a.explainSilence(ctx, cfg, err)
	case errors.Is(err, api.ErrForbidden):
		return nil, fmt.Errorf("%w; run this as root", err)
	}
	return reached, err
}

// dialOperator dials the socket, and the spare one if no process listens on the first.
func dialOperator(ctx context.Context, socket, spare string) (operator, error) {
	client, err := api.Dial(ctx, socket)
	if errors.Is(err, api.ErrNoOperator) {
		if other, spareErr := api.Dial(ctx, spare); spareErr == nil {
			return other, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return client, nil
}

const (
	// returnTimeout is how long an operator may take to answer again after a lost connection.
	returnTimeout = 2 * time.Minute
	returnRetry   = time.Second
)

// awaitOperator dials until an operator answers, returnTimeout has passed, or dial returns errWorkerLeft.
func awaitOperator(ctx context.Context, dial func(context.Context) (operator, error)) (operator, error) {
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
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

// explainSilence extends the error of a silent operator: it says whether a process has the journal open.
func (a *app) explainSilence(ctx context.Context, cfg config.Config, silence error) error {
	file, err := a.fileBackend(cfg)
	if err != nil {
		return errors.Join(silence, err)
	}
	_, err = file.Status(ctx)
	if errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("%w; %w; %s", silence, err, restartPodAdvice)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w; %w", silence, err)
	}
	return fmt.Errorf("%w, and no process holds the journal; look for the process that holds %s", silence, cfg.Socket())
}

// requireUnlocked returns an error that wraps ErrLocked if a process has the journal open.
func (a *app) requireUnlocked(ctx context.Context, cfg config.Config) error {
	file, err := a.fileBackend(cfg)
	if err != nil {
		return err
	}
	_, err = file.Status(ctx)
	return errors.Join(err, file.Close())
}

func (a *app) fileBackend(cfg config.Config) (*offline.Backend, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the ekco binary, which reads the journal in a child: %w", err)
	}
	return offline.New(cfg.Journal, capabilities(cluster{}).Machines(), []string{self, journalChildCommand}, verifyInChild(self)), nil
}

// restartPodAdvice is advice in messages about an operator that hangs.
const restartPodAdvice = "restart its pod (kubectl -n kurl rollout restart deploy/ekc-operator): open actions continue after that"

// lockedError returns an error that explains that another process has the file open: an operator that has just started,
// or an operator that does not serve its socket.
func lockedError(err error) error {
	if errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("%w, which does not listen on the socket next to it; an operator listens a moment after its start: "+
			"try again, and if that does not help, %s", err, restartPodAdvice)
	}
	return err
}
