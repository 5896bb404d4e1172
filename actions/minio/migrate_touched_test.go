package minio

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
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

const (
	toSingle = `{"app":"minio"}`
	toHA     = `{"app":"ha-minio"}`
)

// anew has the next action be about the same MinIO.
func (b *duo) anew() {
	before := b.World
	b.World = actionstest.NewWorld(before.T)
	b.Terms = before.Terms
}

// version is the resource version of the Service.
func (b *duo) version() string {
	return b.Object(minio.ServiceRef(miniosim.Namespace))["metadata"].(map[string]any)["resourceVersion"].(string)
}

// detour has somebody lead clients to the single MinIO for a while, of which nothing shows then.
func (b *duo) detour() {
	b.Point(toSingle)
	b.Source.Write(plain, "meanwhile", "text", s3.Attributes{}, time.Now())
	b.Point(toHA)
}

const stays = `the Service leads to "ha-minio", Deployment true, claim true`

// TestWhatClientsWroteToTheSingleMinIOMeanwhileIsNotDeleted: while EKCO was away somebody had
// the Service lead there again.
func TestWhatClientsWroteToTheSingleMinIOMeanwhileIsNotDeleted(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.held(journal.StepAwaitServedMinio, MinioKeptLongEnough, "waits until it has lasted")
		r.Halt()
		switched := b.cut().Version
		if switched == "" || switched != b.version() {
			t.Errorf("on record is version %q, and it has %q", switched, b.version())
		}
		b.detour()
		b.ends(b.start(), stays)
		if !strings.Contains(b.LastLine(), "ended abandoned Service minio was changed after") {
			t.Fatalf("%s", b.LastLine())
		}
		b.anew()
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: switched, Fingerprint: b.fingerprint(), Target: "target-1"})
		r = b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/meanwhile")
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestASwitchThatNobodyTouchedIsNotComparedAgain: what clients deleted since would be told as
// lacking.
func TestASwitchThatNobodyTouchedIsNotComparedAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.Target.DeleteVersion(kept, "document-0", versionOf(t, b, kept, "document-0"))
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
		b.ends(b.start(), handedOver)
		if b.Count("started compare #") != 0 {
			t.Errorf("the story is\n%s", strings.Join(b.Story(), "\n"))
		}
	})
}

// ailing is an API server by which the highly available one is not healthy from some time on.
type ailing struct {
	minio.API
	is    atomic.Bool
	since func() bool
}

func (a *ailing) Unready(ctx context.Context) (journal.MinioFacts, string, error) {
	if a.is.Load() && a.since() {
		return journal.MinioFacts{}, "", errors.New("MinIO is not healthy")
	}
	return a.API.Unready(ctx)
}

func TestADetourBeforeTheEndIsNoticedWhereverItComes(t *testing.T) {
	for name, test := range map[string]struct {
		asks func(b *duo)
		// since is the event from which on MinIO is not healthy. It is in the journal before the step's
		// preflight runs.
		since, step, preflight string
	}{
		"a switch of before": {func(b *duo) {
			b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
		}, "planned", journal.StepAwaitServedMinio, MinioKeptLongEnough},
		"a switch of somebody else's": {(*duo).asks, "started compare", journal.StepLookBelowAgainMinio, MinioStillServed},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				b.Point(toHA)
				b.migration.KeepSource = 30 * time.Second
				test.asks(b)
				api := &ailing{API: b.Client(b.Objects), since: func() bool { return b.Count(test.since) > 0 }}
				api.is.Store(true)
				m := &migrator{api: api, changed: func() {}, Migration: b.migration}
				m.Stores = miniosim.Network{Both: b.Both}
				r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
				b.held(test.step, test.preflight, "MinIO is not healthy")
				b.Point(toSingle)
				b.Source.Write(plain, "meanwhile", "text", s3.Attributes{}, time.Now())
				b.Pass(time.Minute)
				b.Point(toHA)
				api.is.Store(false)
				r.End()
				if got := b.outcome(); !strings.HasPrefix(got, stays) || !strings.Contains(b.LastLine(), "ended abandoned Service minio was changed") {
					t.Errorf("%s, %s", b.LastLine(), got)
				}
			})
		})
	}
}

// deaf is an API server that switches, and whose answer is lost.
type deaf struct{ minio.API }

func (d deaf) Switch(ctx context.Context, version string) (string, error) {
	_, err := d.API.Switch(ctx, version)
	return "", errors.Join(err, errors.New("the connection broke"))
}

func TestTheVersionOfASwitchIsKnownWhateverBecameOfTheAnswer(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		m := &migrator{api: deaf{b.Client(b.Objects)}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.asks()
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes("done cut-over")
		if cut := b.cut(); cut.Version != b.version() || cut.Disabled {
			t.Errorf("on record is %+v, and it has %q", cut, b.version())
		}
		b.ends(r, handedOver)
	})
	for name, state := range map[string]journal.MinioCutOver{"": {Switches: true, Disabled: true}, "an earlier one": {Switches: true, Version: "an earlier one"}} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			m := &migrator{api: b.Client(b.Objects)}
			b.Point(nowhere)
			if err := m.api.Point(w.T.Context(), journal.MinioServiceHA); err != nil {
				t.Fatal(err)
			}
			step := actions.StepContext{Planned: journal.PlannedStep{ID: journal.StepCutOverMinio}}
			step.Action.Steps = map[string]journal.StepRecord{journal.StepCutOverMinio: {Outputs: raw(t, state)}}
			proof, err := (cutOver{m}).Prove(w.T.Context(), step)
			var left journal.MinioCutOver
			if err := errors.Join(err, json.Unmarshal(proof.Outputs, &left)); err != nil || !proof.Done || left.Disabled {
				t.Fatalf("%v: %+v", err, proof)
			}
			if want := name; left.Version != want && (want != "" || left.Version != b.version()) {
				t.Errorf("it is version %q", left.Version)
			}
		})
	}
}

// undone is an API server by which somebody leads the Service back as soon as EKCO had it lead nowhere, once.
type undone struct {
	minio.API
	back *sync.Once
	undo func()
}

func (u undone) Disable(ctx context.Context, version string) (string, error) {
	disabled, err := u.API.Disable(ctx, version)
	u.back.Do(u.undo)
	return disabled, err
}

// TestAServiceThatIsLedBackAtOnceIsNotSwitched: clients write to the single MinIO again, whose pod stays.
func TestAServiceThatIsLedBackAtOnceIsNotSwitched(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		var pods []string
		api := undone{b.Client(b.Objects), &sync.Once{}, func() { b.Point(toSingle); pods = b.SinglePods() }}
		m := &migrator{api: api, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.asks()
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes("failed cut-over")
		if now := b.SinglePods(); !slices.Equal(now, pods) {
			t.Errorf("the pods are %q, and were %q", now, pods)
		}
		b.ends(r, asBefore)
		if !strings.Contains(b.LastLine(), "ended abandoned another Kubernetes client changed Service minio") {
			t.Error(b.LastLine())
		}
	})
}

// detouring is an API server whose Service a person changes while EKCO lists the pods of a disabled one, once.
type detouring struct {
	minio.API
	detour func()
}

func (d detouring) Single(ctx context.Context) (minio.Single, error) {
	leads, _, err := d.ServiceTarget(ctx)
	if err == nil && leads == journal.MinioServiceDisabled {
		d.detour()
	}
	single, again := d.API.Single(ctx)
	return single, errors.Join(err, again)
}

// TestDetourDuringForcedSwitchRemovesNothing: the Service selects no pods, as EKCO left it, but clients wrote to
// ha-minio in between.
func TestDetourDuringForcedSwitchRemovesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "ours", "text", s3.Attributes{}, time.Now())
		b.Cordon("a", true)
		m := &migrator{api: detouring{b.Client(b.Objects), sync.OnceFunc(func() { b.leadsClientsTo(nowhere) })}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.asks()
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		b.force(r)
		b.staysTheirs(r)
	})
}

// TestAComparisonUnderWhichTheServiceIsChangedIsMadeAnew: clients may have been led to the
// single MinIO meanwhile.
func TestAComparisonUnderWhichTheServiceIsChangedIsMadeAnew(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.migration.KeepSource = 30 * time.Second
		b.asks()
		b.Source.SetLatency(time.Second)
		r := b.start()
		b.comes("started compare")
		b.Pass(3 * time.Second) // the pod is replaced by now
		b.detour()
		b.comes("failed compare")
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/meanwhile")
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestWhatClientsWroteToTheHighlyAvailableOneMeanwhileIsNotRemoved: while EKCO was away somebody
// had the Service lead there for a while.
func TestWhatClientsWroteToTheHighlyAvailableOneMeanwhileIsNotRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		begin, mend func(b *duo)
		preflight   string
	}{
		"before a switch":  {func(b *duo) { b.Cordon("a", true) }, func(b *duo) { b.Cordon("a", false) }, MinioSuccessor},
		"after one failed": {func(b *duo) { b.Reroll(true) }, func(b *duo) { b.Reroll(false) }, MinioTries},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				test.begin(b)
				b.asks()
				r := b.start()
				b.held(journal.StepCutOverMinio, test.preflight, "")
				known := journal.MinioMigrate{Ours: b.Record().Steps[journal.StepCatchUpMinio].DoneAt, Source: "store-1", Target: "target-1"}
				r.Halt()
				r = b.start() // nobody touched it: it goes on
				b.Pass(time.Minute)
				b.held(journal.StepCutOverMinio, test.preflight, "")
				r.Halt()
				test.mend(b)
				b.Point(toHA)
				b.Pass(time.Minute)
				b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
				b.Point(toSingle)
				b.Pass(time.Minute)
				b.ends(b.start(), asBefore)
				if !strings.Contains(b.LastLine(), "ended abandoned Service minio was changed, and may") {
					t.Fatalf("%s", b.LastLine())
				}
				b.anew()
				b.asksWith(known)
				r = b.start()
				b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
				if !strings.Contains(b.Target.Dump(), "theirs") {
					t.Error("it is removed")
				}
				b.force(r)
				b.ends(r, handedOver)
			})
		})
	}
}

// TestWhoeverChangesTheServiceUnderEKCOsEyesStopsNothing: as long as it leads to the single
// MinIO.
func TestWhoeverChangesTheServiceUnderEKCOsEyesStopsNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Cordon("a", true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
		for range 3 {
			b.Edit(minio.ServiceRef(miniosim.Namespace), func(o map[string]any) {
				o["metadata"].(map[string]any)["labels"] = map[string]any{"at": time.Now().String()}
			})
			b.Pass(10 * time.Minute)
		}
		b.Cordon("a", false)
		b.ends(r, handedOver)
	})
}

// TestNothingIsRemovedOnceTheServiceLedElsewhere: for a moment, between two looks.
func TestNothingIsRemovedOnceTheServiceLedElsewhere(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
		both, err := m.open(w.T.Context(), journal.ActionRecord{Steps: map[string]journal.StepRecord{
			journal.StepPrepareMinio: {Outputs: raw(t, journal.MinioPrepared{Source: "store-1", Version: b.version()})},
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, bucket := range []string{"copied", "theirs"} {
			b.Target.AddBucket(bucket, nil)
		}
		if err := both.target.RemoveBucket(w.T.Context(), "copied"); err != nil {
			t.Error(err)
		}
		b.lead(minio.App)
		b.lead("minio")
		if err := both.target.RemoveBucket(w.T.Context(), "theirs"); !errors.Is(err, errTouched) {
			t.Error(err)
		}
	})
}

func TestATrailEndsWhereTheSelectorWasSet(t *testing.T) {
	for name, test := range map[string]struct {
		looks [][2]string
		want  bool
	}{
		"labelled":              {[][2]string{{"2", "at noon"}, {"3", "at noon"}}, true},
		"led there again":       {[][2]string{{"2", "at noon"}, {"3", "at one"}}, false},
		"nobody says by whom":   {[][2]string{{"2", "at noon"}, {"3", ""}}, false},
		"nobody ever says that": {[][2]string{{"2", ""}, {"3", ""}}, false},
		"another look was last": {[][2]string{{"3", "at noon"}, {"4", "at one"}}, false},
	} {
		is := &trail{}
		is.remember("1", "at noon")
		for _, look := range test.looks {
			is.remember(look[0], look[1])
		}
		if got := is.isUnchanged("3", "1"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*trail)(nil).isUnchanged("2", "1") || !(*trail)(nil).isUnchanged("1", "1") {
		t.Error("without a trail the version alone counts")
	}
}

// TestAPutOnItsWayReplacesNothingOfAClient that came to ha-minio by a person's switch.
func TestAPutOnItsWayReplacesNothingOfAClient(t *testing.T) {
	for name, there := range map[string]bool{"new": false, "there": true} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				if there {
					b.Source.Write(plain, "hot", "first", s3.Attributes{}, time.Now())
				}
				b.Cordon("a", true)
				b.asks()
				r := b.start()
				b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
				b.Source.Write(plain, "hot", "second", s3.Attributes{}, time.Now())
				once := sync.OnceFunc(func() {
					b.lead(minio.App)
					b.Target.Write(plain, "hot", "a client's", s3.Attributes{}, time.Now())
				})
				b.Target.BeforeEffect = func(effect string) {
					if effect == "put "+plain+"/hot" {
						once()
					}
				}
				b.Cordon("a", false)
				b.Pass(time.Hour)
				if has := b.Target.Dump(); !strings.Contains(has, "a client's") || b.ServiceLeads() != minio.App || b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
					t.Errorf("%s, and ha-minio has\n%s", b.LastLine(), has)
				}
				r.Halt()
			})
		})
	}
}
