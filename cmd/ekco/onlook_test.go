package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestWhoOnlyLooksOnHasTheClientsOfAllThatIsObserved(t *testing.T) {
	_, cfg := newReachable(t, nil)
	cfg.Journal, cfg.ListenAddress = filepath.Join(t.TempDir(), "journal.db"), "127.0.0.1:0"
	cfg.AutoApproveKubeletCSRs, cfg.EnableHAKotsadm, cfg.RestartFailedEnvoyPods = true, true, true
	cfg.EnableHAMinio, cfg.MinioNamespace = true, "minio"
	onlooker, _, err := startReadOnly(t.Context(), cfg, journal.ErrUnverified, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err = onlooker.Wait(ctx, func(context.Context, int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it looks on until it is told to stop: %v", err)
	}
}
