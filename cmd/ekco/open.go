package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// openJournal opens the journal of a ring. closeStore closes it. A dry run for one node uses a copy, because what it sees
// with its own settings must not become part of the operator's history.
func openJournal(ctx context.Context, cfg config.Config, options ringOptions, now *clock.Clock, log *slog.Logger) (store *bolt.Store, closeStore func() error, err error) {
	check := options.OneShot && !options.WithoutOperator
	isNew := isMissing(cfg.Journal)
	if check && isNew { // before the file is created
		if err := checkElsewhere(ctx, cfg, "", log); err != nil {
			return nil, nil, err
		}
	}
	closeStore = func() error { return store.Close() }
	switch {
	case options.OneShot && options.DryRun:
		store, closeStore, err = openCopy(ctx, cfg, isNew, now, log)
	case options.OneShot:
		store, err = openAtOnce(ctx, cfg, now, log)
	default:
		store, err = openWithRetries(ctx, cfg, now, log)
	}
	if err != nil {
		return nil, nil, err
	}
	if check && !isNew {
		stat, err := store.Stat(ctx)
		if err == nil {
			err = checkElsewhere(ctx, cfg, stat.JournalID, log)
		}
		if err != nil {
			return nil, nil, errors.Join(err, closeStore())
		}
	}
	return store, closeStore, nil
}

// openAtOnce opens the journal for a command without retries. It salvages a damaged journal.
func openAtOnce(ctx context.Context, cfg config.Config, now *clock.Clock, log *slog.Logger) (*bolt.Store, error) {
	store, err := tryToOpen(ctx, cfg, bolt.Options{Now: now.Now}, log)
	if err != nil {
		return nil, offline.Advise(cfg.Journal, err)
	}
	return store, nil
}

// openCopy copies the journal to a temporary directory and opens the copy; if there is no journal, it creates one
// there. closeCopy closes and removes it. The journal itself is not changed, and is in use only while it is copied.
func openCopy(ctx context.Context, cfg config.Config, missing bool, now *clock.Clock, log *slog.Logger) (store *bolt.Store, closeCopy func() error, err error) {
	dir, err := os.MkdirTemp("", "ekco-dry-run-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a temporary directory for a copy of the journal; another place can be set with TMPDIR: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	path := filepath.Join(dir, filepath.Base(cfg.Journal))
	if !missing {
		original, err := tryToOpen(ctx, cfg, bolt.Options{ReadOnly: true, Now: now.Now}, log)
		if err != nil {
			return nil, nil, offline.Advise(cfg.Journal, err)
		}
		if err := errors.Join(original.CopyFile(ctx, path), original.Close()); err != nil {
			return nil, nil, err
		}
	}
	cfg.Journal = path
	store, err = openAtOnce(ctx, cfg, now, log)
	if err != nil {
		return nil, nil, err
	}
	return store, func() error { return errors.Join(store.Close(), remove()) }, nil
}

// openWithRetries opens the journal, and retries if the error may be temporary. Until then EKCO only observes, because
// an operator that exited would be restarted again and again.
func openWithRetries(ctx context.Context, cfg config.Config, now *clock.Clock, log *slog.Logger) (*bolt.Store, error) {
	options := bolt.Options{OwnPath: inOwnPod(cfg), Now: now.Now}
	store, err := tryToOpen(ctx, cfg, options, log)
	if err == nil || !ring.MayPass(err) {
		return store, err
	}
	onlooker, services, err := startReadOnly(ctx, cfg, err, log)
	if err != nil {
		return nil, err
	}
	wait := func(ctx context.Context) error {
		return onlooker.Wait(ctx, func(ctx context.Context, attempt int) (err error) {
			options.ExtraTimeout = time.Duration(attempt) * timeoutStep
			store, err = tryToOpen(ctx, cfg, options, log)
			return err
		})
	}
	err = runTogether(ctx, append(services, wait)...)
	if err != nil && store != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, err
}

// timeoutStep is added to the timeout with each attempt, because a disk can be very slow.
const timeoutStep = 15 * time.Second

// tryToOpen opens the journal. It salvages a damaged journal.
func tryToOpen(ctx context.Context, cfg config.Config, options bolt.Options, log *slog.Logger) (*bolt.Store, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	options.Child = []string{self, journalChildCommand}
	store, salvaged, err := bolt.OpenOrSalvage(ctx, cfg.Journal, options)
	if err != nil {
		return nil, err
	}
	if salvaged != nil {
		log.Error("the journal was damaged: EKCO only observes and explains until \"ekco journal accept\"",
			"problem", salvaged.Problem, "recovered", salvaged.Recovered, "set_aside", salvaged.DamagedFile)
	}
	return store, nil
}

// startReadOnly returns the read-only mode and its services. If the socket cannot be created, for example on a
// read-only disk, commands find the spare socket in the directory for temporary files.
func startReadOnly(ctx context.Context, cfg config.Config, problem error, log *slog.Logger) (*ring.Onlooker, []service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the ekco binary, which verifies the journal in a child: %w", err)
	}
	metrics := api.NewMetrics()
	reached, err := newClients(cfg, kube.Terms{ReadOnly: true}, metrics, log)
	if err != nil {
		return nil, nil, err
	}
	onlooker := ring.NewOnlooker(ring.OnlookerConfig{
		Path: cfg.Journal, Identity: identity(cfg), Log: log, Metrics: metrics, Verify: verifyInChild(self),
		Capabilities: capabilities(reached), Observe: observe(reached.kube, time.Now, cfg, metrics.Observed, log),
	}, problem)
	port, err := listenPort(ctx, cfg, log)
	if err != nil {
		return nil, nil, err
	}
	metrics.Attend(onlooker.Status, capabilities(cluster{}).Vocabulary().Verb)
	services := []service{func(ctx context.Context) error {
		return api.ServeHTTP(ctx, port, onlooker, metrics.Gatherer(), log)
	}}
	socket, err := api.Listen(ctx, cfg.Socket())
	if err != nil {
		log.Warn("listening on another socket", "socket", cfg.SpareSocket(), "error", err)
		socket, err = api.Listen(ctx, cfg.SpareSocket())
	}
	if err != nil {
		log.Warn("commands cannot connect to this EKCO", "error", err)
		return onlooker, services, nil
	}
	return onlooker, append(services, func(ctx context.Context) error {
		return api.Serve(ctx, socket, onlooker, log)
	}), nil
}
