package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/observers"
)

// observe starts the observers of the capabilities' sources.
func observe(client *kube.Client, now func() time.Time, cfg config.Config, lag func(resource string, lag time.Duration), log *slog.Logger) ring.StartObservers {
	return func(ctx context.Context, sources []observers.Source, recorder ring.Recorder) ring.Observers {
		return observers.Start(ctx, observers.Options{
			Sources: sources, Probe: client.Probe, Recorder: recorder, Log: log,
			PollInterval: cfg.ReconcileInterval, Lag: lag, Now: now,
		})
	}
}
