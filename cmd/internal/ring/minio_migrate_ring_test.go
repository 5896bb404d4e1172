package ring

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsminio "github.com/replicatedhq/ekco/actions/minio"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmminio "github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observersminio "github.com/replicatedhq/ekco/observers/minio"
)

// duos are both MinIOs of an estate, once it has them.
type duos map[*estate]*miniosim.Both

// reach is how an estate reaches them.
type reach struct {
	all duos
	e   *estate
}

func (r reach) Health(ctx context.Context, address string, question minio.Question) (minio.Answer, error) {
	if b := r.all[r.e]; b != nil {
		return b.Health(ctx, address, question)
	}
	return minio.Answer{}, errors.New("there is no MinIO")
}

func (r reach) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	r.e.house.mu.Lock()
	life := r.e.life
	r.e.house.mu.Unlock()
	return miniosim.Network{Both: r.all[r.e], Alive: life.check, Around: func(_ string, do func() error) error {
		_, err := r.e.around(func() (json.RawMessage, error) { return nil, do() })
		return err
	}}.Store(addresses, credentials)
}

func (r reach) Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	return r.all[r.e].Exec(ctx, pod, argv)
}

func (r reach) Healer(at string, with minio.Credentials) (minio.Healer, error) {
	return r.all[r.e].Healer(at, with)
}

// capability is MinIO as the product has it.
func (d duos) capability(e *estate) Capability {
	api, nudge := minio.NewClient(e, reach{d, e}, miniosim.Namespace), &observers.Nudge{}
	return Capability{
		Fsm: fsmminio.WithMigration(), Policy: fsmminio.Policy{Migrates: true}, Words: fsmminio.Words,
		Actions: func(kube.API) []actions.Definition {
			return append(actionsminio.New(api, e, reach{d, e}, actionsminio.DefaultHealSettleTime, nudge.Look), actionsminio.NewMigration(api, actionsminio.Migration{
				Stores: reach{d, e}, CutOverLimit: actionsminio.DefaultCutOverLimit, KeepSource: time.Minute, AbsentFor: actionsminio.DefaultAbsentFor,
			}, nudge.Look))
		},
		Sources: func(state *fsm.State) []observers.Source {
			return nudge.Over(observersminio.New(observersminio.Options{
				API: api, Namespace: miniosim.Namespace, Known: fsmminio.Known(state),
				Pods: e.server.PodsLabelled(miniosim.Namespace, minio.Label, minio.App),
			})...)
		},
	}
}

// install installs both in an estate with three nodes, with something in the single one.
func (d duos) install(e *estate) *miniosim.Both {
	e.join("b", "c")
	b := miniosim.InstallBoth(e.objects, "a", "b", "c")
	e.policy.enginePolicy = e.policy.With(fsmminio.Machine, fsmminio.Policy{Migrates: true})
	b.ReconcileBothAfter(20*time.Second, time.Second)
	b.Source.AddBucket("bucket", nil)
	b.Source.Write("bucket", "key", "text", s3.Attributes{}, time.Now())
	d[e] = b
	return b
}

// inADuo runs a test with both MinIOs and an application that writes all the time, of which
// nothing may be lost in the end.
func inADuo(t *testing.T, test func(e *estate, b *miniosim.Both) *incarnation) {
	all := duos{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		b := all.install(e)
		b.Source.AddBucket("busy", nil)
		writer := b.Application(e.t.Context(), "busy", 500*time.Millisecond)
		in := test(e, b)
		e.takes(30*time.Minute, func() bool { return e.objects.Object(minio.DeploymentRef(miniosim.Namespace)) == nil })
		pass(5 * time.Minute)
		writer.Stop()
		if missing := writer.Missing(b.Target); missing != "" || b.ServiceLeads() != minio.App {
			e.t.Errorf("the Service leads to %q; %s\n%s", b.ServiceLeads(), missing, e.history("table"))
		}
		if open := e.state().OpenActions(); len(open) != 0 {
			e.t.Errorf("actions are left open: %+v", open)
		}
		if err := in.stop(); err != nil {
			e.t.Error(err)
		}
	})
}

func TestMinIOGrowsAndIsMigrated(t *testing.T) {
	inADuo(t, func(e *estate, b *miniosim.Both) *incarnation {
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == minio.App })
		e.says("the history", e.history("tree"), "scale-minio minio/ha-minio: done", "migrate-minio minio/ha-minio", "cut-over")
		e.says("the history", e.history("table"), "Single → Migrating")
		e.takes(time.Minute, func() bool { return e.state().Things[b.UID].State == fsmminio.HA })
		return in
	})
}

// TestAnEKCOThatDiesWhileNobodyCanWriteGoesOnAtItsNextStart: it does not settle first.
func TestAnEKCOThatDiesWhileNobodyCanWriteGoesOnAtItsNextStart(t *testing.T) {
	inADuo(t, func(e *estate, b *miniosim.Both) *incarnation {
		b.Hang(true)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == "" })
		in.life.kill()
		b.Hang(false)
		e.t.Logf("it ended: %v", <-in.ended)
		e.closeJournal()
		e.openJournal("journal.db")
		in = e.live(nil)
		if took := e.takes(time.Minute, func() bool { return b.ServiceLeads() != "" }); took > 10*time.Second {
			e.t.Errorf("it took %s", took)
		}
		return in
	})
}

// TestAnEKCOThatIsStoppedWhileNobodyCanWriteGoesBackFirst: installers scale it to none.
func TestAnEKCOThatIsStoppedWhileNobodyCanWriteGoesBackFirst(t *testing.T) {
	inADuo(t, func(e *estate, b *miniosim.Both) *incarnation {
		b.Hang(true)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == "" })
		began := time.Now()
		if err := in.stop(); err != nil {
			e.t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second || b.ServiceLeads() != "minio" {
			e.t.Errorf("after %s the Service leads to %q", took, b.ServiceLeads())
		}
		b.Hang(false)
		e.closeJournal()
		e.openJournal("journal.db")
		return e.live(nil)
	})
}

// TestInSafeModeClientsAreLedBackAndNothingElseIsDone: EKCO was killed while the Service selected
// no pods, and a person may be long in coming.
func TestInSafeModeClientsAreLedBackAndNothingElseIsDone(t *testing.T) {
	inADuo(t, func(e *estate, b *miniosim.Both) *incarnation {
		b.Hang(true)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == "" })
		in.life.kill()
		t.Logf("it ended: %v", <-in.ended)
		b.Hang(false)
		e.closeJournal()
		e.openJournal("journal.db")
		e.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{DamagedFile: "f"})
		before := len(e.changes())
		in = e.live(nil)
		e.takes(5*time.Minute, func() bool { return b.ServiceLeads() == "minio" })
		pass(time.Hour)
		if changes := e.changes(); len(changes) != before+1 || b.ServiceLeads() != "minio" || !e.state().Journal.SafeMode() {
			e.t.Errorf("the Service leads to %q after %q, safe mode is %t", b.ServiceLeads(), changes[before:], e.state().Journal.SafeMode())
		}
		e.command(in.Backend(nil).Do(e.t.Context(), api.AcceptRequest{Reason: "looked at it", Actor: "cli:root@test"}))
		return in
	})
}

// TestALostJournalHasTheServiceRepairedAndTheMigrationBegunAnew: what another EKCO left
// disabled is nobody's.
func TestALostJournalHasTheServiceRepairedAndTheMigrationBegunAnew(t *testing.T) {
	inADuo(t, func(e *estate, b *miniosim.Both) *incarnation {
		place(b.MinIO, "a", "b", "c", "a", "b", "c")
		b.Point(`{"doesnotexist":"doesnotexist"}`)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == minio.App })
		kinds := map[journal.ActionKind]bool{}
		for _, event := range e.events(journal.Query{Types: []journal.Type{journal.TypeActionRequested}}) {
			var requested journal.ActionRequested
			if err := json.Unmarshal(event.Payload, &requested); err != nil {
				e.t.Fatal(err)
			}
			kinds[requested.Kind] = true
		}
		if !kinds[journal.ActionRepairMinio] || !kinds[journal.ActionMigrateMinio] {
			e.t.Errorf("asked for were %v", kinds)
		}
		return in
	})
}

// TestAServiceThatIsDisabledAfterTheSwitchLeadsToTheHighlyAvailableOneAgain: by an older EKCO, say.
// What it was switched to is the truth, and before the single one is deleted both are compared.
func TestAServiceThatIsDisabledAfterTheSwitchLeadsToTheHighlyAvailableOneAgain(t *testing.T) {
	all := duos{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		b := all.install(e)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool { return b.ServiceLeads() == minio.App })
		pass(10 * time.Second)
		b.Target.Write("bucket", "theirs", "text", s3.Attributes{}, time.Now())
		b.Point(`{"doesnotexist":"doesnotexist"}`)
		e.takes(5*time.Minute, func() bool { return b.ServiceLeads() != "" })
		if leads := b.ServiceLeads(); leads != minio.App {
			e.t.Errorf("the Service leads to %q", leads)
		}
		e.takes(30*time.Minute, func() bool { return e.objects.Object(minio.DeploymentRef(miniosim.Namespace)) == nil })
		if dump := b.Target.Dump(); !strings.Contains(dump, "theirs") {
			e.t.Errorf("ha-minio has\n%s", dump)
		}
		e.says("the history", e.history("table"), "compare is done")
		if err := in.stop(); err != nil {
			e.t.Error(err)
		}
	})
}

// TestAPersonWhoLedADisabledServiceThereAndBackLosesNothing: an older EKCO had disabled it and not
// come to its end. What clients wrote meanwhile is only on the highly available one.
func TestAPersonWhoLedADisabledServiceThereAndBackLosesNothing(t *testing.T) {
	all := duos{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		b := all.install(e)
		place(b.MinIO, "a", "b", "c", "a", "b", "c")
		const nowhere = `{"doesnotexist":"doesnotexist"}`
		b.Point(nowhere)
		b.Target.AddBucket("bucket", nil)
		b.Point(`{"app":"ha-minio"}`)
		in := e.live(nil)
		pass(3 * time.Minute)
		b.Target.Write("bucket", "theirs", "text", s3.Attributes{}, time.Now())
		b.Point(nowhere)
		e.takes(5*time.Minute, func() bool { return b.ServiceLeads() == "minio" })
		pass(time.Hour)
		if dump := b.Target.Dump(); b.ServiceLeads() != "minio" || !strings.Contains(dump, "theirs") {
			e.t.Errorf("the Service leads to %q, and ha-minio has\n%s", b.ServiceLeads(), dump)
		}
		e.says("the history", e.history("table"), "object bucket/theirs")
		if err := in.stop(); err != nil {
			e.t.Error(err)
		}
	})
}
