package systemd_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/systemd"
	"github.com/replicatedhq/ekco/internal/systemd/systemdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kubelet = "kubelet.service"

// unit returns the kubelet's, looked at often.
func unit(t *testing.T, s *systemdtest.Systemd) *systemd.Unit {
	t.Helper()
	return steadyUnit(t, s, 20*time.Millisecond)
}

// steadyUnit returns the kubelet's with this [systemd.Systemd.MinActiveTime].
func steadyUnit(t *testing.T, s *systemdtest.Systemd, steady time.Duration) *systemd.Unit {
	t.Helper()
	conn, err := systemd.Connect(t.Context(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	conn.MinActiveTime, conn.PollInterval = steady, time.Millisecond
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	u, err := conn.Unit(t.Context(), kubelet)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAUnitIsRestartedAndSeenActiveAgain(t *testing.T) {
	stopping := systemdtest.Running()
	stopping.Active, stopping.Sub, stopping.Job = "deactivating", "stop-sigterm", true
	crashed, again := systemdtest.Running(), systemdtest.Running()
	crashed.Active, crashed.Sub, crashed.Result = "activating", "auto-restart", "exit-code"
	failedWithJob := stopping
	failedWithJob.Active, failedWithJob.Sub = "failed", "failed"
	for name, states := range map[string][]systemdtest.State{
		"at once": nil, "after its end": {stopping, stopping, again}, "after a crash": {stopping, systemdtest.Running(), crashed, again},
		"as another again and again": {systemdtest.Running(), systemdtest.Running(), again}, "that had failed before": {failedWithJob, again},
	} {
		s := systemdtest.Start(t, kubelet)
		s.AfterRestart(kubelet, states...)
		if err := unit(t, s).Restart(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{kubelet}, s.Restarts()); diff != "" {
			t.Error(diff)
		}
		if len(states) > 0 && s.Left(kubelet) > 0 {
			t.Errorf("%s: it was not waited for", name)
		}
	}
}

func TestAUnitThatIsNotActiveAgainIsToldOf(t *testing.T) {
	down := systemdtest.Running()
	down.Active, down.Sub, down.Result = "failed", "failed", "start-limit-hit"
	s := systemdtest.Start(t, kubelet)
	s.AfterRestart(kubelet, down)
	if err := unit(t, s).Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "kubelet.service was restarted and is failed (failed), result start-limit-hit; see journalctl -u kubelet.service") {
		t.Error(err)
	}
	looping := systemdtest.Running()
	looping.Active, looping.Sub, looping.Result = "activating", "auto-restart", "exit-code"
	ctx, cancel := context.WithCancel(t.Context())
	s.AfterRestart(kubelet, looping)
	s.Settled(cancel)
	err := unit(t, s).Restart(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not active again in time: is activating (auto-restart), result exit-code") {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	active, unseen := systemdtest.Running(), looping
	ended := looping
	ended.Invocation, unseen.Invocation = active.Invocation, systemdtest.NewStart()
	s.AfterRestart(kubelet, looping, active, ended, unseen)
	s.Settled(cancel)
	if err := unit(t, s).Restart(ctx); err == nil || !strings.Contains(err.Error(), "was restarted and does not stay active: it started 2 times, and ended within ") {
		t.Error(err)
	}
	s.Refuse("no")
	if err := unit(t, s).Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "restart kubelet.service: no") {
		t.Error(err)
	}
}

// TestTheOldProcessIsNotTakenForTheNewOne: RestartUnit does not wait, and for a moment the old
// one is active.
func TestTheOldProcessIsNotTakenForTheNewOne(t *testing.T) {
	s := systemdtest.Start(t, kubelet)
	old := s.State(kubelet)
	s.AfterRestart(kubelet, append(slices.Repeat([]systemdtest.State{old}, 60), systemdtest.Running())...)
	if err := unit(t, s).Restart(t.Context()); err != nil || s.Left(kubelet) > 0 {
		t.Errorf("%v, %d left", err, s.Left(kubelet))
	}
}

func TestAUnitIsAwaitedUntilItIsSteady(t *testing.T) {
	s := systemdtest.Start(t, kubelet)
	ctx, cancel := context.WithCancel(t.Context())
	s.AfterRestart(kubelet, slices.Repeat([]systemdtest.State{systemdtest.Running()}, 5)...)
	s.Settled(cancel)
	if err := steadyUnit(t, s, time.Hour).Restart(ctx); !errors.Is(err, context.Canceled) || s.Left(kubelet) > 0 {
		t.Errorf("%v, %d left", err, s.Left(kubelet))
	}
}

// TestEachBreakMakesAUnitUnsteady: with MinActiveTime 0, a unit is steady when two looks in a row find the same start.
func TestEachBreakMakesAUnitUnsteady(t *testing.T) {
	active := systemdtest.Running()
	reloading := active
	reloading.Active, reloading.Sub = "reloading", "reload"
	another := systemdtest.Running()
	for name, states := range map[string][]systemdtest.State{
		"another start between two looks": {active, systemdtest.Running(), another, another},
		"a reload":                        {active, reloading, active, active},
	} {
		s := systemdtest.Start(t, kubelet)
		s.AfterRestart(kubelet, states...)
		if err := steadyUnit(t, s, 0).Restart(t.Context()); err != nil || s.Left(kubelet) > 0 {
			t.Errorf("%s: %v, %d left", name, err, s.Left(kubelet))
		}
	}
}

// TestASystemdWithoutInvocations: before 232 a start is told from others by when it was active.
func TestASystemdWithoutInvocations(t *testing.T) {
	s := systemdtest.Start(t, kubelet)
	old, now := systemdtest.Running(), systemdtest.Running()
	old.Invocation, now.Invocation = nil, nil
	old.ActiveSince, now.ActiveSince = 1, 2
	s.AfterRestart(kubelet, old)
	if err := unit(t, s).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.AfterRestart(kubelet, append(slices.Repeat([]systemdtest.State{old}, 60), now)...)
	if err := unit(t, s).Restart(t.Context()); err != nil || s.Left(kubelet) > 0 {
		t.Errorf("%v, %d left", err, s.Left(kubelet))
	}
}

func TestWhereThereIsNoUnitOrNoSystemdItIsSaid(t *testing.T) {
	s := systemdtest.Start(t)
	conn, err := systemd.Connect(t.Context(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Unit(t.Context(), kubelet); err == nil || !strings.Contains(err.Error(), "systemd cannot restart kubelet.service: its load state is not-found") {
		t.Error(err)
	}
	if _, err := systemd.Connect(t.Context(), "unix:path="+filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "reach systemd over D-Bus") {
		t.Error(err)
	}
}

// TestABusThatDoesNotAnswerIsNotWaitedForForEver.
func TestABusThatDoesNotAnswerIsNotWaitedForForEver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := systemd.Connect(ctx, "unix:path="+path); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
