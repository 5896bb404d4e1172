package minio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// soon is within how much time a step that may take hours hears of what stops it.
const soon = 5 * time.Second

// whileSlow runs a test with a migration whose step takes hours.
func whileSlow(t *testing.T, step string, test func(b *duo, r *actionstest.Running)) {
	t.Helper()
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		b.Source.SetLatency(100 * time.Millisecond) // or the step is over before it is slow
		r := b.start()
		b.comes("started " + step)
		b.slow(true)
		w.Pass(10 * time.Minute)
		if b.Count("done "+step) != 0 || b.Count("failed "+step) != 0 {
			t.Fatalf("it does not take long:\n%s", strings.Join(w.Story(), "\n"))
		}
		test(b, r)
	})
}

// slow has each answer of the source take minutes.
func (b *duo) slow(slow bool) {
	latency := time.Duration(0)
	if slow {
		latency = 4 * time.Minute
	}
	b.Source.SetLatency(latency)
}

// TestACancelIsHeardByWhatTakesLong: also by a switch that has not begun, which keeps nobody out then.
func TestACancelIsHeardByWhatTakesLong(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				began := time.Now()
				b.Cancel(r)
				r.End()
				if took := time.Since(began); took > soon {
					t.Errorf("it took %s", took)
				}
				if got := b.outcome(); !strings.HasPrefix(got, asBefore) || !strings.HasPrefix(b.LastLine(), "ended cancelled") {
					t.Errorf("%s, %s", b.LastLine(), got)
				}
				if n := b.Calls("patch services"); n != 0 {
					t.Errorf("the Service was patched %d times", n)
				}
			})
		})
	}
}

func TestAStopIsHeardByWhatTakesLong(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				began := time.Now()
				r.Halt()
				if took := time.Since(began); took > soon {
					t.Errorf("it took %s", took)
				}
				b.slow(false)
				b.ends(b.start(), handedOver)
			})
		})
	}
}

func TestTheInstallerIsHeardByACopyAndByACatchUp(t *testing.T) {
	for _, step := range []string{journal.StepCopyMinio, journal.StepCatchUpMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				b.Point(`{"app":"does-not-exist"}`)
				b.Pass(soon)
				if b.Count("failed "+step) != 1 {
					t.Errorf("it goes on:\n%s", strings.Join(b.Story(), "\n"))
				}
				b.held(step, MinioStillToMigrate, "the installer works on MinIO")
				b.slow(false)
				b.Point(`{"app":"minio"}`)
				b.Retry(r)
				b.ends(r, asBefore) // nobody knows where the installer led it meanwhile
			})
		})
	}
}

// TestWhatAClientWroteToHAInAMomentIsKept: the Service leads there and back between two looks.
func TestWhatAClientWroteToHAInAMomentIsKept(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		t.Run(step, func(t *testing.T) {
			whileSlow(t, step, func(b *duo, r *actionstest.Running) {
				b.lead(minio.App)
				b.Target.AddBucket("meanwhile", nil)
				b.Target.Write("meanwhile", "theirs", "text", s3.Attributes{}, time.Now())
				b.lead("minio")
				b.slow(false)
				b.Pass(time.Hour)
				if !strings.Contains(b.Target.Dump(), "theirs") {
					t.Errorf("it is removed:\n%s", strings.Join(b.Story(), "\n"))
				}
				if n := b.Calls("patch services"); n != 0 {
					t.Errorf("the Service was patched %d times", n)
				}
				if step == journal.StepPrepareMinio { // which begins again, and finds it
					b.held(step, MinioNothingForeign, "bucket meanwhile")
					r.Halt()
					return
				}
				b.ends(r, asBefore)
			})
		})
	}
}

// lead has a person lead the Service elsewhere.
func (b *duo) lead(app string) {
	b.Edit(minio.ServiceRef(miniosim.Namespace), func(o map[string]any) {
		o["spec"].(map[string]any)["selector"] = map[string]any{minio.Label: app}
	})
}

// TestAPauseIsHeardByWhatTakesLong: also by a switch that has not begun, which keeps nobody out then.
func TestAPauseIsHeardByWhatTakesLong(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio} {
		t.Run(step, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Target.AddBucket(kept, s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.Lifecycle: "<expire/>"}) // EKCO unsets it
				b.asks()
				b.Source.SetLatency(100 * time.Millisecond)
				paused := actionstest.NewPreflight(actions.Pass())
				r := b.Start(actionstest.With(b.Config(b.definitions(nil)), map[string]actions.Preflight{"Paused": paused}))
				b.comes("started " + step)
				b.slow(true)
				w.Pass(10 * time.Minute)
				before := len(b.Target.Effects())
				paused.SetVerdict(actions.Hold("paused"))
				b.slow(step == journal.StepPrepareMinio)
				w.Pass(time.Hour)
				b.slow(false)
				b.held(step, "Paused", "paused")
				if n := b.Calls("patch services"); n != 0 {
					t.Errorf("the Service was patched %d times:\n%s", n, strings.Join(b.Story(), "\n"))
				}
				if step == journal.StepPrepareMinio && len(b.Target.Effects()) != before {
					t.Errorf("the target was changed:\n%s", strings.Join(b.Story(), "\n"))
				}
				paused.SetVerdict(actions.Pass())
				b.Retry(r)
				b.ends(r, handedOver)
			})
		})
	}
}

// TestNoOutageBeginsAfterAPause, however late that comes: the last that is asked is policy.
func TestNoOutageBeginsAfterAPause(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		paused := actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			if b.cut().Disabled && b.cut().Away == "" {
				return actions.Hold("paused")
			}
			return actions.Pass()
		})
		r := b.Start(actionstest.With(b.Config(b.definitions(nil)), map[string]actions.Preflight{"Paused": paused}))
		b.comes("failed cut-over")
		if n := b.Calls("patch services"); n != 0 || b.cut().Disabled || b.cut().Tries != 0 {
			t.Errorf("the Service was patched %d times, and on record is %+v", n, b.cut())
		}
		r.Halt()
	})
}

// disabling is an API server that counts the calls that start an outage: such a call may have an effect although its
// caller no longer waits.
type disabling struct {
	minio.API
	calls *atomic.Int32
}

func (d disabling) Disable(ctx context.Context, version string) (string, error) {
	d.calls.Add(1)
	return d.API.Disable(ctx, version)
}

// TestNoOutageBeginsAfterAStop: EKCO stops while the preflights are asked for the last time.
func TestNoOutageBeginsAfterAStop(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		api := disabling{b.Client(b.Objects), new(atomic.Int32)}
		m := &migrator{api: api, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		r := w.Ready()
		last := false
		paused := actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
			if b.cut().Disabled && b.cut().Away == "" {
				last = true
				r.Stop()
				<-ctx.Done()
			}
			return actions.Pass()
		})
		r.Begin(actionstest.With(b.Config([]actions.Definition{migrateDefinition(m)}), map[string]actions.Preflight{"Paused": paused}), w.Record())
		if err := r.Wait(); !errors.Is(err, context.Canceled) || !last {
			t.Errorf("stopped before the outage: %t, %v", last, err)
		}
		if n := api.calls.Load(); n != 0 {
			t.Errorf("after the stop EKCO called the API %d times to start the outage", n)
		}
		b.backs()
	})
}

func TestRoomIsAskedForAgainDuringTheCopy(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		for i := range 1000 {
			b.Source.Write(plain, fmt.Sprintf("object-%04d", i), "content", s3.Attributes{}, time.Now())
		}
		b.asks()
		b.Target.SetLatency(time.Second)
		r := b.start()
		b.comes("started copy")
		b.Target.SetLatency(30 * time.Second)
		w.Pass(5 * time.Minute)
		b.Fill(100)
		b.held(journal.StepCopyMinio, MinioRoom, "has room for 100 bytes")
		before := len(b.Target.Effects())
		w.Pass(10 * time.Minute)
		if n := len(b.Target.Effects()); n != before {
			t.Errorf("%d objects more were copied", n-before)
		}
		b.Target.SetLatency(0)
		b.Fill(1 << 30)
		b.Retry(r)
		b.ends(r, handedOver)
	})
}

func TestWhatAnEarlierCopyLeftNeedsNoRoomAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		content := strings.Repeat("0123456789abcdef", 1<<16)
		at := time.Now().Add(-time.Hour)
		b.Target.AddBucket(plain, nil)
		for i := range 10 {
			b.Source.Write(plain, fmt.Sprint("large-", i), content, s3.Attributes{}, at)
			b.Target.Write(plain, fmt.Sprint("large-", i), content, s3.Attributes{}, at)
		}
		b.Fill(1 << 20) // of ten that are there
		b.asks()
		b.ends(b.start(), handedOver)
	})
}
