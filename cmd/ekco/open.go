package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal/bolt"
)

// openAtOnce opens the journal for a command without retries. It salvages a damaged journal.
func openAtOnce(ctx context.Context, cfg config.Config, now *clock.Clock, log *slog.Logger) (*bolt.Store, error) {
	store, err := tryToOpen(ctx, cfg, bolt.Options{Now: now.Now}, log)
	if err != nil {
		return nil, offline.Advise(cfg.Journal, err)
	}
	return store, nil
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
// read-only disk, commands find another one in the directory for temporary files.
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
