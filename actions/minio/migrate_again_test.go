package minio

import (
	"context"
	"iter"
	"slices"
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

// TestWhatAnotherTargetHasIsNoCopy: ha-minio got the volumes of an earlier time, with what clients wrote then.
func TestWhatAnotherTargetHasIsNoCopy(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "report", "of standalone MinIO", s3.Attributes{}, time.Now().Add(-2*time.Hour))
		b.EmptyTarget()
		b.Target.AddBucket(plain, nil)
		b.Target.Write(plain, "report", "of ha-minio alone", s3.Attributes{}, time.Now().Add(-time.Hour))
		b.asksWith(journal.MinioMigrate{Ours: time.Now(), Source: "store-1", Target: "target-1"})
		r := b.start()
		b.Pass(time.Minute)
		if held := b.Record().Holds[journal.StepPrepareMinio]; held.Preflight != MinioNothingForeign || !strings.Contains(b.Target.Dump(), "of ha-minio alone") {
			t.Errorf("it is held by %+v, and ha-minio has\n%s", held, b.Target.Dump())
		}
		r.Halt()
	})
}

// TestTheClaimIsKeptByAnOlderRecordToo: an EKCO that did not record the id of ha-minio's store prepared the migration.
func TestTheClaimIsKeptByAnOlderRecordToo(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		m := &migrator{api: b.Client(b.Objects), Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		prepared := journal.MinioPrepared{Source: "store-1", Done: true}
		record := recordOf(t, ours, map[string]any{journal.StepPrepareMinio: prepared})
		left, err := m.findLateChanges(w.T.Context(), record)
		if err != nil || left.Count != 0 {
			t.Fatalf("%+v, %v", left, err)
		}
		left.Done = true
		plan := ours
		claim, _, err := m.api.SingleClaim(w.T.Context())
		if err != nil {
			t.Fatal(err)
		}
		plan.Claim = claim.UID
		b.Remove(minio.DeploymentRef(miniosim.Namespace))
		b.EmptyTarget()
		record = recordOf(t, plan, map[string]any{journal.StepPrepareMinio: prepared, journal.StepDeleteMinioDeployment: left})
		record.Subject = b.subject
		proof, err := deleteSingleClaim{m}.Prove(w.T.Context(), actions.StepContext{Action: record})
		if err != nil || !strings.Contains(string(proof.Outputs), "is kept") {
			t.Errorf("the claim is to be deleted although ha-minio is empty: %+v, %v", proof, err)
		}
	})
}

// flicker is a standalone MinIO whose container restarts without its volume after two buckets were listed, until it is
// back.
type flicker struct {
	miniosim.Network
	listed *atomic.Int64
	back   *atomic.Bool
}

func (f flicker) Store(addresses []string, with minio.Credentials) (minio.Store, error) {
	store, err := f.Network.Store(addresses, with)
	if err != nil || !strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return flickering{store, f}, nil
}

type flickering struct {
	minio.Store
	flicker
}

func (f flickering) gone() bool { return f.listed.Load() >= 2 && !f.back.Load() }

func (f flickering) Buckets(ctx context.Context) ([]string, error) {
	if f.gone() {
		return nil, nil
	}
	return f.Store.Buckets(ctx)
}

func (f flickering) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		defer f.listed.Add(1)
		f.Store.Versions(ctx, bucket, after)(yield)
	}
}

func (f flickering) Server(ctx context.Context) (s3.Server, error) {
	server, err := f.Store.Server(ctx)
	if f.gone() {
		server.Deployment = "store-2"
	}
	return server, err
}

// TestAComparisonWithAnotherStoreProvesNothing: the volume was away while EKCO compared, which takes hours.
func TestAComparisonWithAnotherStoreProvesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Source.Write(plain, "only", "acknowledged", s3.Attributes{}, time.Now())
		b.Point(toHA)
		b.asks()
		f := flicker{miniosim.Network{Both: b.Both}, &atomic.Int64{}, &atomic.Bool{}}
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		m.Stores = f
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		for range 200 {
			if b.Pass(5 * time.Second); f.listed.Load() >= 2 && b.Count("done compare")+b.Count("failed compare") > 0 {
				break
			}
		}
		f.back.Store(true)
		b.Pass(2 * recheckInterval)
		if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
			t.Errorf("%s\n%s", got, strings.Join(b.Story(), "\n"))
		}
		r.Halt()
	})
}

// TestAPodIsReplacedOnceItsStoreIsOnRecord: outside a run nothing can be recorded.
func TestAPodIsReplacedOnceItsStoreIsOnRecord(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Point(toHA)
		served := b.SinglePods()
		m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
		step := actions.StepContext{Action: recordOf(t, ours, nil), Planned: journal.PlannedStep{ID: journal.StepCompareMinio}}
		if _, err := (compareStores{m}).compareOnce(w.T.Context(), step); err == nil || !slices.Equal(b.SinglePods(), served) {
			t.Errorf("pods %q were replaced by %q, %v", served, b.SinglePods(), err)
		}
	})
}

// untold are two MinIOs from before April 2023, which list no attributes.
type untold struct{ miniosim.Network }

func (u untold) Store(addresses []string, with minio.Credentials) (minio.Store, error) {
	store, err := u.Network.Store(addresses, with)
	if err != nil {
		return nil, err
	}
	return terse{store}, nil
}

type terse struct{ minio.Store }

func (s terse) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		for v, err := range s.Store.Versions(ctx, bucket, after) {
			v.Attributes = nil
			if !yield(v, err) {
				return
			}
		}
	}
}

func (s terse) VersionsOf(ctx context.Context, bucket, key string) ([]s3.Version, error) {
	versions, err := s.Store.VersionsOf(ctx, bucket, key)
	for i := range versions {
		versions[i].Attributes = nil
	}
	return versions, err
}

// TestALegalHoldThatNoListTellsIsFoundLast: clients set it past the switch. What they removed from ha-minio is no
// reason to wait.
func TestALegalHoldThatNoListTellsIsFoundLast(t *testing.T) {
	for name, late := range map[string]struct {
		does func(*duo)
		want string
	}{
		"a legal hold":           {besides(s3.Attributes{LegalHold: true}), "Deployment true, claim true"},
		"a removal on the other": {func(b *duo) { b.Target.Lose(kept, "document-0", versionOf(b.T, b, kept, "document-0")) }, "Deployment false, claim false"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.asks()
				m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration, listener: &listener{}}
				m.Stores = untold{miniosim.Network{Both: b.Both}}
				r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
				b.comes("done cut-over")
				late.does(b)
				b.Pass(DefaultKeepSource + 5*time.Minute)
				if got := b.outcome(); !strings.Contains(got, late.want) {
					t.Errorf("it says %s; %s", b.LastLine(), got)
				}
				r.Halt()
			})
		})
	}
}

// TestAPlanWithoutTheComparisonThatCanBeCancelledIsFollowed: an earlier EKCO made it, and recorded no fingerprint.
func TestAPlanWithoutTheComparisonThatCanBeCancelledIsFollowed(t *testing.T) {
	for name, late := range map[string]bool{"nothing is late": false, "something is": true} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.asks()
				m := &migrator{api: b.Client(b.Objects), Migration: b.migration}
				plan, err := m.plan(w.T.Context(), b.Record())
				if err != nil {
					t.Fatal(err)
				}
				plan.Steps = slices.DeleteFunc(plan.Steps, func(s journal.PlannedStep) bool { return s.ID == journal.StepCompareAgainMinio })
				for i := range plan.Steps[1:] {
					plan.Steps[i+1].After = []string{plan.Steps[i].ID}
				}
				b.Append("operator", journal.ActionPlanned{Plan: plan}, journal.TypeActionPlanned)
				r := b.start()
				b.comes("done cut-over")
				if late {
					b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, time.Now())
					b.held(journal.StepDeleteMinioDeployment, MinioNothingLacks, "object plain/late (null, ")
					if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
						t.Error(got)
					}
					b.force(r)
				}
				b.ends(r, handedOver)
			})
		})
	}
}

// TestASourceThatIsGoneForTheLastLookIsNotDeletedUnasked: nobody knows what is on it.
func TestASourceThatIsGoneForTheLastLookIsNotDeletedUnasked(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Source.SetLatency(5 * time.Second)
		for b.Count("started delete-deployment") == 0 {
			b.Pass(time.Second)
		}
		b.Stick(true)
		b.KillSingle()
		b.held(journal.StepDeleteMinioDeployment, MinioNothingLacks, "Deployment minio has no pod")
		b.Pass(3 * recheckInterval)
		if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
			t.Fatal(got)
		}
		b.held(journal.StepDeleteMinioDeployment, MinioNothingLacks, "Deployment minio has no pod")
		b.force(r)
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "Deployment minio has no pod")
		b.force(r)
		b.ends(r, claimKept)
	})
}

// below finds an object below another one from the deletion on.
type below struct {
	minio.API
	deletes func() bool
}

func (l below) Nested(ctx context.Context, pod string) ([]minio.Nested, error) {
	if l.deletes() {
		return []minio.Nested{{Bucket: plain, Key: "report/2026.csv", Above: "report"}}, nil
	}
	return l.API.Nested(ctx, pod)
}

// TestACheckThatEndsWithAHoldProvesNothingLater: another client deletes the Deployment minutes later.
func TestACheckThatEndsWithAHoldProvesNothingLater(t *testing.T) {
	other := minio.ServiceRef(miniosim.Namespace)
	other.Name = "minio-nodeport"
	for name, isBelow := range map[string]bool{"an object below another": true, "another Service": false} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.asks()
				m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration, listener: &listener{}}
				m.Stores = miniosim.Network{Both: b.Both}
				if isBelow {
					m.api = below{m.api, func() bool { return b.Count("started delete-deployment") > 0 }}
				}
				cfg, put := b.Config([]actions.Definition{migrateDefinition(m)}), false
				cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
					if !isBelow && !put && b.Count("noted delete-deployment") > 0 {
						put = true
						b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
					}
					return actions.Pass()
				})
				r := b.Start(cfg)
				if isBelow {
					b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "report/2026.csv")
				} else {
					b.held(journal.StepDeleteMinioDeployment, MinioNoBypass, "minio-nodeport")
				}
				b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, time.Now())
				b.Remove(minio.DeploymentRef(miniosim.Namespace))
				b.ReconcileSingle()
				b.Remove(other)
				b.Retry(r)
				r.End()
				if got := b.outcome(); !strings.Contains(got, claimKept) {
					t.Errorf("it ends with %s; %s", b.LastLine(), got)
				}
			})
		})
	}
}

// deleting is a cluster in which another client deletes Deployment minio before it is read the second time.
type deleting struct {
	minio.API
	reads int
	first func()
}

func (d *deleting) Single(ctx context.Context) (minio.Single, error) {
	if d.reads++; d.reads == 2 {
		d.first()
	}
	return d.API.Single(ctx)
}

// TestADeletionBeforeTheLastSearchProvesNothing: there is no pod left that could search the drive.
func TestADeletionBeforeTheLastSearchProvesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		m := &migrator{Migration: b.migration, api: &deleting{API: b.Client(b.Objects), first: func() {
			b.Remove(minio.DeploymentRef(miniosim.Namespace))
			b.ReconcileSingle()
		}}}
		m.Stores = miniosim.Network{Both: b.Both}
		plan := ours
		plan.Deployment = b.deployment()
		record := recordOf(t, plan, map[string]any{journal.StepPrepareMinio: journal.MinioPrepared{Source: "store-1", Target: "target-1", Done: true}})
		step := actions.StepContext{Action: record, Planned: journal.PlannedStep{ID: journal.StepDeleteMinioDeployment}}
		if outputs, err := (deleteDeployment{m}).checkBeforeDeletion(w.T.Context(), step); err != nil || string(outputs) != "{}" {
			t.Errorf("it is on record as %s, %v", outputs, err)
		}
	})
}

// TestWhatALifecycleRemovesAfterTheSwitchIsNotMissed: ha-minio has it, too, or its lifecycle removed it.
func TestWhatALifecycleRemovesAfterTheSwitchIsNotMissed(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Source.Delete(kept, "document-0", time.Now())
		r.End()
		if got := b.outcome(); !strings.Contains(got, "Deployment false, claim false") {
			t.Errorf("it ends with %s; %s", b.LastLine(), got)
		}
	})
}

// TestAnOlderPlanThatHasDeletedTheDeploymentDeletesTheClaim: it has no check that could prove anything.
func TestAnOlderPlanThatHasDeletedTheDeploymentDeletesTheClaim(t *testing.T) {
	left := &remains{claim: minio.Claim{UID: "uid-claim"}, exists: true}
	record := recordOf(t, ours, map[string]any{journal.StepDeleteMinioDeployment: struct{}{}})
	record.Planned, record.Plan.Steps = true, []journal.PlannedStep{{ID: journal.StepDeleteMinioDeployment, Does: journal.StepDeleteMinioDeployment}}
	if proof, err := (deleteSingleClaim{&migrator{api: left}}).Prove(t.Context(), actions.StepContext{Action: record}); err != nil || proof.Done {
		t.Errorf("%+v, %v", proof, err)
	}
}
