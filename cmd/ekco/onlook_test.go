package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
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

func TestCommandsFindAnOperatorThatCannotWriteTheDirectoryOfItsJournal(t *testing.T) {
	short, err := os.MkdirTemp("", "spare") // the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	t.Setenv("TMPDIR", short)
	_, cfg := newReachable(t, nil)
	cfg.Journal, cfg.ListenAddress = "/proc/ekco/journal.db", "127.0.0.1:0" // nobody can create a directory there
	_, services, err := startReadOnly(t.Context(), cfg, journal.ErrUnverified, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runTogether(ctx, services...) }()
	a := &app{dial: dialOperator}
	reached, err := a.dialOperator(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	status, err := reached.Status(t.Context())
	if err != nil || status.Journal.Unopened == nil {
		t.Errorf("the status says %+v, %v", status.Journal, err)
	}
	reached.Close()
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(short, "ekco-*")); err != nil || len(left) != 0 {
		t.Errorf("%v; left behind are %q", err, left)
	}
}
