package minio

import (
	"context"
	"encoding/json"
	"errors"
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

// broken are stores of which the source has a defect once it was told to.
type broken struct {
	minio.Stores
	broken func() bool
}

func (b broken) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	if b.broken() {
		panic("a defect")
	}
	return b.Stores.Store(addresses, credentials)
}

func TestAPanicWhileNobodyCanWriteTakesTheServiceBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		var is atomic.Bool
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		m.Stores = broken{miniosim.Network{Both: b.Both}, func() bool { return is.Load() && b.ServiceLeads() == "" }}
		b.asks()
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes("done catch-up")
		is.Store(true)
		b.comes("failed cut-over")
		b.backs()
		is.Store(false)
		b.ends(r, handedOver)
		if !strings.Contains(b.Logged(), "a defect") {
			t.Error("nobody is told of the defect")
		}
	})
}

// TestASwitchThatCannotBeReadIsTakenBack: of a version that wrote it otherwise, say.
func TestASwitchThatCannotBeReadIsTakenBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		b.Point(`{"doesnotexist":"doesnotexist"}`)
		step := actions.StepContext{Planned: journal.PlannedStep{ID: journal.StepCutOverMinio}}
		step.Action.Steps = map[string]journal.StepRecord{journal.StepCutOverMinio: {Outputs: json.RawMessage(`{"disabled":"yes"}`)}}
		if _, err := (cutOver{m}).Do(w.T.Context(), step); err == nil || b.ServiceLeads() != "minio" {
			t.Errorf("the Service leads to %q: %v", b.ServiceLeads(), err)
		}
	})
}

// refusing is an API server that does not do what it is asked for as long as it shall not.
type refusing struct {
	minio.API
	disable, switches atomic.Bool
}

var errRefused = errors.New("a webhook refused it")

func (r *refusing) Disable(ctx context.Context, version string) (string, error) {
	if r.disable.Load() {
		return "", errRefused
	}
	return r.API.Disable(ctx, version)
}

func (r *refusing) Switch(ctx context.Context, version string) (string, error) {
	if r.switches.Load() {
		return "", errRefused
	}
	return r.API.Switch(ctx, version)
}

// refuses starts a migration at such an API server.
func (b *duo) refuses(r *refusing) *actionstest.Running {
	b.T.Helper()
	r.API = b.Client(b.Objects)
	m := &migrator{api: r, changed: func() {}, Migration: b.migration}
	m.Stores = miniosim.Network{Both: b.Both}
	return b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
}

// TestWhatActsByItselfIsTakenFromTheTargetWhereTheSwitchFails: it would expire what was copied.
func TestWhatActsByItselfIsTakenFromTheTargetWhereTheSwitchFails(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		api := &refusing{}
		api.switches.Store(true)
		r := b.refuses(api)
		b.comes(`"settled":true`)
		b.held(journal.StepCutOverMinio, MinioTries, "a webhook refused it")
		b.backs()
		if settings, err := b.Target.Settings(w.T.Context(), kept); err != nil || settings[s3.Lifecycle] != "" {
			t.Errorf("%v: settings are %v", err, settings)
		}
		api.switches.Store(false)
		b.ends(r, handedOver)
	})
}

func TestASwitchGoesToWhatIsThereWhereTheDeploymentIsGone(t *testing.T) {
	for name, end := range map[string]func(b *duo, r *actionstest.Running){
		"of itself": func(b *duo, r *actionstest.Running) { r.End() },
		"cancelled": func(b *duo, r *actionstest.Running) { b.Cancel(r); r.End() },
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Hang(true)
				b.asks()
				r := b.start()
				b.comes("noted cut-over")
				b.Remove(minio.DeploymentRef(miniosim.Namespace))
				end(b, r)
				if got := b.ServiceLeads(); got != minio.App {
					t.Errorf("the Service leads to %q\n%s", got, strings.Join(b.Story(), "\n"))
				}
			})
		})
	}
}

// TestACallOffGoesToWhatIsThere: the Deployment may be gone.
func TestACallOffGoesToWhatIsThere(t *testing.T) {
	for deployed, want := range map[bool]string{true: "minio", false: minio.App} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
			b.Point(`{"doesnotexist":"doesnotexist"}`)
			if !deployed {
				b.Remove(minio.DeploymentRef(miniosim.Namespace))
			}
			if _, err := (undoSwitch{m}).Do(w.T.Context(), actions.StepContext{}); err != nil || b.ServiceLeads() != want {
				t.Errorf("it leads to %q, want %q: %v", b.ServiceLeads(), want, err)
			}
		})
	}
}

// TestAWayBackReadsNoMoreThanItMust: what else cannot be read would keep the Service off.
func TestAWayBackReadsNoMoreThanItMust(t *testing.T) {
	for _, verb := range []string{"list pods", "get replicasets"} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
			b.Point(nowhere)
			b.Forbid(verb)
			if _, err := m.api.Single(w.T.Context()); err == nil {
				t.Fatalf("%s is not forbidden", verb)
			}
			if _, err := (undoSwitch{m}).Do(w.T.Context(), actions.StepContext{}); err != nil || b.ServiceLeads() != "minio" {
				t.Errorf("without %q it leads to %q: %v", verb, b.ServiceLeads(), err)
			}
		})
	}
}

// TestUsersThatAreNotThereYetAreWaitedFor: a server serves what it stores before it has them.
func TestUsersThatAreNotThereYetAreWaitedFor(t *testing.T) {
	inADuo(t, func(b *duo) {
		r := b.start()
		b.comes("done catch-up")
		b.LoadUsersIn(3 * time.Second)
		b.ends(r, handedOver)
		if b.LastLine() != "ended done" || b.Count("failed cut-over #1") != 0 || !b.SameIAM() {
			t.Errorf("%s\n%s", b.LastLine(), strings.Join(b.Story(), "\n"))
		}
	})
}

// TestATryIsOneThatTookTheServiceAway: others are no reason to give up.
func TestATryIsOneThatTookTheServiceAway(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		api := &refusing{}
		api.disable.Store(true)
		r := b.refuses(api)
		for range 6 {
			b.held(journal.StepCutOverMinio, MinioTries, "Service minio selects standalone MinIO; EKCO tries again at")
			b.Pass(retryPause)
		}
		if n := b.Count("failed cut-over"); n < 6 || n > 8 {
			t.Errorf("it was tried %d times in half an hour", n)
		}
		api.disable.Store(false)
		b.ends(r, handedOver)
	})
}

func TestAHoldSaysWhereTheServiceLeads(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		m := &migrator{api: b.Client(b.Objects), Migration: b.migration}
		b.Point(`{"app":"something"}`)
		cut, err := json.Marshal(journal.MinioCutOver{Tries: maxTries, FailedAt: time.Now(), Error: "no pod"})
		if err != nil {
			t.Fatal(err)
		}
		record := journal.ActionRecord{Steps: map[string]journal.StepRecord{journal.StepCutOverMinio: {Attempts: 3, Failures: maxTries, Outputs: cut}}}
		if got := m.mayTry(w.T.Context(), record); !strings.Contains(got.Reason, "Service minio selects something else") {
			t.Errorf("it is said: %s", got.Reason)
		}
	})
}

// TestATimeInTheFutureHoldsNothing: another clock wrote it.
func TestATimeInTheFutureHoldsNothing(t *testing.T) {
	ahead := time.Now().Add(24 * time.Hour)
	record := journal.ActionRecord{Steps: map[string]journal.StepRecord{
		journal.StepCutOverMinio: {Attempts: 1, Failures: 1, Outputs: raw(t, journal.MinioCutOver{Tries: 1, FailedAt: ahead})},
		journal.StepCatchUpMinio: {Attempts: 1, Outputs: raw(t, journal.MinioCaughtUp{TooFast: "fast", TooFastSince: ahead})},
	}}
	if got := (&migrator{}).mayTry(t.Context(), record); got.Kind != actions.VerdictPass {
		t.Errorf("tried is %+v", got)
	}
	if got := sourceCalm(t.Context(), record); got.Kind != actions.VerdictPass {
		t.Errorf("calm is %+v", got)
	}
}

// raw is a value as it is on record.
func raw(t testing.TB, v any) json.RawMessage {
	t.Helper()
	content, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
