package minio

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// TestASwitchBySomebodyElseIsNoProof: the single one may have what nobody copied.
func TestASwitchBySomebodyElseIsNoProof(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(b *duo)
		want string
	}{
		"nothing was copied": {func(b *duo) { b.Target.DropBucket(kept); b.Target.DropBucket(plain) }, "bucket kept"},
		"an object lacks": {
			func(b *duo) { b.Source.Write(plain, "last", "text", s3.Attributes{}, time.Now()) }, "would lose 1 item that ha-minio does not have: object plain/last (null, ",
		},
		"an object is older": {func(b *duo) {
			b.Target.Write(plain, "both", "old", s3.Attributes{}, time.Now().Add(-time.Hour))
			b.Source.Write(plain, "both", "new", s3.Attributes{}, time.Now())
		}, "object plain/both (null, "},
		"a user lacks":      {func(b *duo) { b.AddUser("app", "late") }, "user late"},
		"a user differs":    {func(b *duo) { b.AddUser("app" + miniosim.Disabled) }, "user app"},
		"a setting lacks":   {func(b *duo) { b.set(b.Source, s3.Policy, `{"Version":"1"}`) }, "the policy of bucket kept"},
		"a setting is left": {func(b *duo) { b.set(b.Source, s3.Lifecycle, "") }, "the lifecycle of bucket kept"},
		"a setting differs": {func(b *duo) { b.set(b.Target, s3.Lifecycle, "<keep/>") }, "the lifecycle of bucket kept"},
		"a copy without metadata": {func(b *duo) {
			b.Source.Write(plain, "both", "text", s3.Attributes{Tags: map[string]string{"team": "a"}, LegalHold: true}, time.Now().Add(-time.Hour))
			b.Target.Write(plain, "both", "text", s3.Attributes{}, time.Now())
		}, "tags retention or legal hold] of object plain/both"},
		"tags":         {besides(s3.Attributes{Tags: map[string]string{"team": "a"}}), "the [tags] of object kept/document-0"},
		"metadata":     {besides(s3.Attributes{Headers: map[string]string{"X-Amz-Meta-Colour": "blue"}}), "the [metadata] of object kept/document-0"},
		"a legal hold": {besides(s3.Attributes{LegalHold: true}), "the [retention or legal hold] of object kept/document-0"},
		"a retention": {
			besides(s3.Attributes{Retention: &s3.Retention{Mode: "GOVERNANCE", Until: time.Unix(2e9, 0)}}), "the [retention or legal hold] of object kept/document-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				test.lose(b)
				b.Point(`{"app":"ha-minio"}`)
				b.asks()
				r := b.start()
				b.held(journal.StepCompareMinio, MinioNothingLacks, test.want)
				if name == "an object lacks" { // the others would take as long, and show no more
					b.Pass(3*time.Hour + recheckInterval/2)
				}
				if b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
					t.Fatal("the single one is gone")
				}
				if n := b.Count("failed compare"); n > 5 {
					t.Errorf("it was looked at %d times in three hours", n)
				}
				b.Retry(r) // looks again, and finds the same
				b.held(journal.StepCompareMinio, MinioNothingLacks, test.want)
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false, claim false`)
			})
		})
	}
}

// set sets a setting of the bucket with versions.
func (b *duo) set(store *s3sim.Store, name s3.SettingName, value string) {
	b.T.Helper()
	if err := store.Set(b.T.Context(), kept, name, value); err != nil {
		b.T.Fatal(err)
	}
}

// besides has the single one alone have that with the newest version of an object.
func besides(attributes s3.Attributes) func(b *duo) {
	return func(b *duo) {
		b.T.Helper()
		versions, err := b.Target.VersionsOf(b.T.Context(), kept, "document-0")
		if err != nil || len(versions) == 0 {
			b.T.Fatalf("%v, %v", versions, err)
		}
		v := versions[0]
		v.Attributes = &attributes
		if len(attributes.Headers) > 0 { // they are of a write, not set later
			b.Source.DeleteVersion(kept, v.Key, v.ID)
			content := "text 2"
			if err := b.Source.Put(b.T.Context(), kept, v, nil, strings.NewReader(content), false); err != nil {
				b.T.Fatal(err)
			}
			return
		}
		if err := b.Source.Annotate(b.T.Context(), kept, v, s3.Attributes{}); err != nil {
			b.T.Fatal(err)
		}
	}
}

// TestWhatClientsChangedSinceTheSwitchIsNotCompared: what they wrote on ha-minio, or wrote over, is newer.
func TestWhatClientsChangedSinceTheSwitchIsNotCompared(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "both", "old", s3.Attributes{Tags: map[string]string{"team": "a"}}, time.Now().Add(-time.Hour))
		b.copied()
		b.Target.Write(plain, "both", "new", s3.Attributes{}, time.Now())
		b.Target.Write(plain, "theirs", "new", s3.Attributes{}, time.Now())
		b.Target.Write(kept, "document-0", "new", s3.Attributes{}, time.Now())
		b.Point(`{"app":"ha-minio"}`)
		b.asks()
		b.ends(b.start(), `the Service leads to "ha-minio", Deployment false, claim false`)
	})
}

// noticed are stores of which the source does something once it has listed a bucket.
type noticed struct {
	minio.Stores
	listed func()
}

func (l noticed) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := l.Stores.Store(addresses, credentials)
	if err != nil || !strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return noticedSource{store, l.listed}, nil
}

type noticedSource struct {
	minio.Store
	listed func()
}

func (s noticedSource) Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error] {
	return func(yield func(s3.Version, error) bool) {
		for v, err := range s.Store.Versions(ctx, bucket, after) {
			if !yield(v, err) {
				return
			}
		}
		if bucket == plain {
			s.listed()
		}
	}
}

// TestWhatIsWrittenDuringAComparisonIsNotTakenForCompared: the last look begins where that did.
func TestWhatIsWrittenDuringAComparisonIsNotTakenForCompared(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asks()
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		m.Stores = noticed{miniosim.Network{Both: b.Both}, sync.OnceFunc(func() { b.Source.Write(plain, "late", "text", s3.Attributes{}, time.Now()) })}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/late (null, ")
		r.Halt()
	})
}

// unsettled are stores of which the source does not tell settings.
type unsettled struct{ minio.Stores }

func (u unsettled) Store(addresses []string, credentials minio.Credentials) (minio.Store, error) {
	store, err := u.Stores.Store(addresses, credentials)
	if err != nil || !strings.HasPrefix(addresses[0], "10.") {
		return store, err
	}
	return unsettledSource{store}, nil
}

type unsettledSource struct{ minio.Store }

func (unsettledSource) Settings(context.Context, string) (s3.Settings, error) {
	return nil, errors.New("no answer")
}

// TestAComparisonThatFailsIsNone: nothing is deleted after it.
func TestAComparisonThatFailsIsNone(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asks()
		m := &migrator{api: b.Client(b.Objects), changed: func() {}, Migration: b.migration}
		m.Stores = unsettled{miniosim.Network{Both: b.Both}}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.Pass(DefaultKeepSource)
		b.comes("failed compare")
		b.Pass(time.Hour)
		if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") || b.Count("done compare") > 0 {
			t.Errorf("%s, %s", b.LastLine(), got)
		}
		r.Halt()
	})
}

// TestASwitchBySomebodyElseFromAnEmptyVolumeKeepsItsClaim: the pod that takes the place of the one that served finds an
// empty store, which lacks nothing, and the claim may have the only copy. Nor is it forgotten by another look.
func TestASwitchBySomebodyElseFromAnEmptyVolumeKeepsItsClaim(t *testing.T) {
	for name, test := range map[string]struct {
		step  string
		known func(b *duo) journal.MinioMigrate
		kill  bool
	}{
		"by a person":                 {step: journal.StepCompareMinio, known: func(*duo) journal.MinioMigrate { return journal.MinioMigrate{} }},
		"it is empty when EKCO looks": {step: journal.StepCompareMinio, known: func(*duo) journal.MinioMigrate { return journal.MinioMigrate{Source: "store-1"} }, kill: true},
		"by EKCO, and there is no look": {step: journal.StepCompareAgainMinio, known: func(b *duo) journal.MinioMigrate {
			return journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1", Source: "store-1"}
		}, kill: true},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Point(toHA)
				b.asksWith(test.known(b))
				b.Move(s3sim.New())
				if test.kill {
					b.KillSingle()
				}
				r := b.start()
				b.held(test.step, MinioNothingLacks, "its deployment id is store-2, and was store-1")
				b.Pass(2 * recheckInterval)
				b.Retry(r)
				b.held(test.step, MinioNothingLacks, "its deployment id is store-2, and was store-1")
				b.force(r)
				b.ends(r, claimKept)
			})
		})
	}
}

// TestWhatTheVolumeWasIsKnownInAnotherProcess that comes to it after the pod was replaced, or to the last look.
func TestWhatTheVolumeWasIsKnownInAnotherProcess(t *testing.T) {
	for step, comes := range map[string]func(b *duo){
		journal.StepCompareMinio: func(b *duo) {
			b.Stick(true)
			b.held(journal.StepCompareMinio, MinioNothingLacks, "wait for the next pod")
			b.Move(s3sim.New())
			b.Stick(false)
		},
		journal.StepCompareAgainMinio: func(b *duo) {
			b.Source.SetLatency(time.Second)
			b.comes("done compare")
			b.Move(s3sim.New())
			b.KillSingle()
		},
	} {
		t.Run(step, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				b.Point(toHA)
				b.asks()
				r := b.start()
				b.Pass(DefaultKeepSource - time.Minute)
				comes(b)
				r.Halt()
				b.Pass(time.Minute)
				r = b.start()
				b.Retry(r)
				b.held(step, MinioNothingLacks, "its deployment id is store-2, and was store-1")
				b.force(r)
				b.ends(r, claimKept)
			})
		})
	}
}

// TestWhatIsWrittenByOldConnectionsIsCompared: a switch ends no connections.
func TestWhatIsWrittenByOldConnectionsIsCompared(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(`{"app":"ha-minio"}`)
		served := b.SinglePods()
		b.asks()
		r := b.start()
		b.held(journal.StepAwaitServedMinio, MinioKeptLongEnough, "waits until it has lasted")
		b.Pass(5 * time.Minute)
		b.Source.Write(plain, "late", "text", s3.Attributes{}, time.Now())
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/late")
		for _, pod := range served {
			if b.Object(minio.SinglePodRef(miniosim.Namespace, pod)) != nil {
				t.Errorf("pod %s, to which clients are connected, goes on", pod)
			}
		}
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestASwitchBySomebodyElseWhereThePodCannotBeReplacedIsNotKnown: it goes on serving until
// somebody decides.
func TestASwitchBySomebodyElseWhereThePodCannotBeReplacedIsNotKnown(t *testing.T) {
	for name, spoil := range map[string]func(b *duo){
		"connected to pod":                      func(b *duo) { b.Cordon("a", true) },
		"wait for the next pod":                 func(b *duo) { b.Stick(true) },
		"minio-by-hand has the label app=minio": func(b *duo) { b.Crowd(true) },
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				b.Point(`{"app":"ha-minio"}`)
				b.asks()
				spoil(b)
				r := b.start()
				b.held(journal.StepCompareMinio, MinioNothingLacks, name)
				b.Pass(2 * time.Hour)
				if b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
					t.Fatal("the single one is gone")
				}
				b.force(r)
				b.ends(r, claimKept)
			})
		})
	}
}

// TestADeploymentThatWasMadeSinceTheSwitchIsCompared: what it has EKCO never copied.
func TestADeploymentThatWasMadeSinceTheSwitchIsCompared(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Source.Write(plain, "last", "text", s3.Attributes{}, time.Now())
		b.Point(`{"app":"ha-minio"}`)
		b.asksWith(journal.MinioMigrate{Switched: true, From: "another-" + b.deployment()})
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/last")
		r.Halt()
	})
}

func TestWhatWasLackingIsLookedForAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Point(`{"app":"ha-minio"}`)
		b.asks()
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "bucket kept")
		b.Point(`{"app":"minio"}`)
		b.copied()
		b.Point(`{"app":"ha-minio"}`)
		b.ends(r, handedOver)
	})
}

func TestASwitchBySomebodyElseFromAMinIOThatIsAwayKeepsItsClaim(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(`{"app":"ha-minio"}`)
		b.Stick(true)
		b.KillSingle()
		b.asks()
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "cannot check")
		b.force(r)
		b.ends(r, claimKept)
		b.saysClaimKept()
	})
}

// TestASwitchBySomebodyElseInTheMiddleIsNotTakenForEKCOs: neither before clients were cut off
// nor after.
func TestASwitchBySomebodyElseInTheMiddleIsNotTakenForEKCOs(t *testing.T) {
	for _, after := range []string{"done catch-up", "noted cut-over"} {
		t.Run(after, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.SetLatency(5 * time.Millisecond)
				b.Hang(true)
				b.asks()
				r := b.start()
				b.comes(after)
				b.Point(`{"app":"ha-minio"}`)
				b.Hang(false)
				r.End()
				if got := b.outcome(); !strings.HasPrefix(got, `the Service leads to "ha-minio", Deployment true, claim true`) || !strings.Contains(b.LastLine(), "ended abandoned") {
					t.Errorf("%s, %s\n%s", b.LastLine(), got, strings.Join(b.Story(), "\n"))
				}
			})
		})
	}
}

// TestWhatIsOnTheTargetAndNotEKCOsIsNotRemoved: of clients that use it directly, or from when
// it served.
func TestWhatIsOnTheTargetAndNotEKCOsIsNotRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(b *duo)
		want string
	}{
		"an object": {func(b *duo) {
			b.Target.AddBucket(plain, nil)
			b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
		}, "ha-minio has 1 item that standalone MinIO does not have, and that may not be copies by EKCO: object plain/theirs (null, "},
		"a newer object": {func(b *duo) {
			b.Source.Write(plain, "both", "old", s3.Attributes{}, time.Now().Add(-time.Hour))
			b.Target.AddBucket(plain, nil)
			b.Target.Write(plain, "both", "new", s3.Attributes{}, time.Now())
		}, "object plain/both (null, "},
		"other metadata": {func(b *duo) {
			b.Source.Write(plain, "both", "text", s3.Attributes{Headers: map[string]string{"Content-Type": "a/a"}}, time.Now().Add(-time.Hour))
			b.copied()
			b.Target.Write(plain, "both", "text", s3.Attributes{Headers: map[string]string{"Content-Type": "b/b"}}, time.Now())
		}, "has 1 item that standalone MinIO does not have, and that may not be copies by EKCO: object plain/both (null, "},
		"a bucket":            {func(b *duo) { b.Target.AddBucket("theirs", nil) }, "bucket theirs"},
		"a setting":           {func(b *duo) { b.copied(); b.set(b.Target, s3.Policy, `{"Version":"1"}`) }, "has 1 item that standalone MinIO does not have, and that may not be copies by EKCO: the policy of bucket kept ("},
		"a setting that acts": {func(b *duo) { b.copied(); b.set(b.Target, s3.Lifecycle, "<keep/>") }, "has 1 item that standalone MinIO does not have, and that may not be copies by EKCO: the lifecycle of bucket kept ("},
		"a default retention": {func(b *duo) { b.copied(); b.set(b.Target, s3.ObjectLock, "<Rule>10 days</Rule>") }, "the object lock of bucket kept ("},
		"a legal hold": {func(b *duo) {
			b.copied()
			annotated(b, s3.Attributes{LegalHold: true, Tags: map[string]string{"case": "17"}})
		}, "the [tags retention or legal hold] of object kept/document-0"},
		"a user": {func(b *duo) { b.AddUser("app" + miniosim.Disabled); b.copied(); b.AddUser("app") }, "user app ("},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				test.put(b)
				before := b.Target.Dump()
				b.asks()
				r := b.start()
				b.held(journal.StepPrepareMinio, MinioNothingForeign, test.want)
				b.Pass(recheckInterval / 2) // it is not looked at just then
				if got := b.Target.Dump(); got != before {
					t.Errorf("it has %s now, want %s", got, before)
				}
				b.backs()
				b.force(r)
				b.ends(r, handedOver)
			})
		})
	}
}

// annotated has clients of ha-minio give that to the newest version of an object.
func annotated(b *duo, attributes s3.Attributes) {
	b.T.Helper()
	versions, err := b.Target.VersionsOf(b.T.Context(), kept, "document-0")
	if err == nil {
		v := versions[0]
		v.Attributes = &attributes
		err = b.Target.Annotate(b.T.Context(), kept, v, s3.Attributes{})
	}
	if err != nil {
		b.T.Fatal(err)
	}
}

// TestACopyOfBeforeIsNotForeign: a migration that was given up has taken away what acts by itself, and what clients of
// the single MinIO have set since is not on ha-minio.
func TestACopyOfBeforeIsNotForeign(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.AddBucket("acts", acts)
		b.copied()
		m := &migrator{api: b.Client(b.Objects), Migration: Migration{Stores: miniosim.Network{Both: b.Both}}}
		if err := m.removeActingSettings(w.T.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Target.Set(w.T.Context(), "acts", s3.Versioning, s3.VersioningEnabled); err != nil {
			t.Fatal(err)
		}
		b.set(b.Source, s3.Policy, `{"Version":"1"}`)
		b.asks()
		b.ends(b.start(), handedOver)
	})
}

// TestWhatAnEarlierMigrationLeftIsEKCOs: it was called off, and goes on where the single one
// has deleted something since.
func TestWhatAnEarlierMigrationLeftIsEKCOs(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Source.DeleteVersion(kept, "document-0", versionOf(t, b, kept, "document-0"))
		b.asksWith(journal.MinioMigrate{Ours: time.Now().Add(-time.Minute), Source: "store-1", Target: "target-1"})
		b.ends(b.start(), handedOver)
	})
}

// TestATimeThatIsStillToComeSaysNothing: the clock was ahead when EKCO copied, and was put right.
func TestATimeThatIsStillToComeSaysNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
		b.asksWith(journal.MinioMigrate{Ours: time.Now().Add(3 * time.Hour), Source: "store-1", Target: "target-1"})
		r := b.start()
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
		r.Halt()
	})
}

// TestWhatIsForeignOnABusyStoreIsForcedOnce: until somebody has answered it is something else.
func TestWhatIsForeignOnABusyStoreIsForcedOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Target.AddBucket(plain, nil)
		b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
		b.asks()
		r := b.start()
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
		b.Pass(12 * time.Hour) // looks again each hour, more often than a step is tried, and does not tire of it
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
		b.Target.Write(plain, "another", "text", s3.Attributes{}, time.Now())
		b.Move(s3sim.New()) // nobody went past that
		b.KillSingle()
		b.Pass(time.Minute)
		b.force(r)
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/another")
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestAForceReleasesWhatTheHoldNamedAndNoMore: what is found besides holds again, also what was written
// over the same object since.
func TestAForceReleasesWhatTheHoldNamedAndNoMore(t *testing.T) {
	for name, test := range map[string]struct {
		more func(b *duo)
		want string
	}{
		"a hundred others": {func(b *duo) {
			for i := range 100 {
				b.Target.Write(plain, fmt.Sprintf("late-%03d", i), "text", s3.Attributes{}, time.Now())
			}
		}, "1 more, too many"},
		"one other":       {func(b *duo) { b.Target.Write(plain, "late", "text", s3.Attributes{}, time.Now()) }, "object plain/late"},
		"the same, newer": {func(b *duo) { b.Target.Write(plain, "theirs", "newer", s3.Attributes{}, time.Now()) }, "object plain/theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Target.AddBucket(plain, nil)
				b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
				b.asks()
				r := b.start()
				b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
				test.more(b)
				before := b.Target.Dump()
				b.force(r)
				b.Pass(time.Minute)
				b.held(journal.StepPrepareMinio, MinioNothingForeign, test.want)
				if got := b.Target.Dump(); got != before {
					t.Errorf("it has %s now, want %s", got, before)
				}
				r.Halt()
			})
		})
	}
}

// TestWhatLacksBesidesIsNotReleased: clients delete there all the time.
func TestWhatLacksBesidesIsNotReleased(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Source.Write(plain, "first", "text", s3.Attributes{}, time.Now())
		b.Point(`{"app":"ha-minio"}`)
		b.asks()
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/first")
		b.Target.DeleteVersion(kept, "document-0", versionOf(t, b, kept, "document-0"))
		b.force(r)
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object kept/document-0")
		if b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
			t.Fatal("the single one is gone")
		}
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestAForceOfAnotherListReleasesNothing: the hold has found more since somebody read it.
func TestAForceOfAnotherListReleasesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Target.AddBucket(plain, nil)
		b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
		b.asks()
		r := b.start()
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
		read := listOf(b.Record())
		b.Target.Write(plain, "late", "text", s3.Attributes{}, time.Now())
		b.Pass(2 * recheckInterval)
		b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/late")
		for _, key := range []string{read, ""} {
			b.Append("cli:me@here", journal.ActionRetried{Force: true, List: key}, journal.TypeActionRetried)
			b.Tell(r, journal.TypeActionRetried)
			b.Pass(time.Minute)
			b.held(journal.StepPrepareMinio, MinioNothingForeign, "ekco retry --force --list "+listOf(b.Record())+" ")
		}
		if n := len(b.Record().Forced); n != 0 || listOf(b.Record()) == read {
			t.Errorf("%d are forced, and list %s holds", n, read)
		}
		b.force(r)
		b.ends(r, handedOver)
	})
}

// TestWhatLacksIsReleasedAsItWas: another content under the same name nobody has released.
func TestWhatLacksIsReleasedAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		lose, again func(b *duo)
		want        string
	}{
		"a setting": {
			func(b *duo) { b.set(b.Source, s3.Policy, `{"Version":"1"}`) }, func(b *duo) { b.set(b.Source, s3.Policy, `{"Version":"2"}`) }, "the policy of bucket kept (",
		},
		"tags": {besides(s3.Attributes{Tags: map[string]string{"team": "a"}}), besides(s3.Attributes{Tags: map[string]string{"team": "b"}}), "the [tags] of object kept/document-0"},
		"a user": {
			func(b *duo) { b.AddUser("app", "late") }, func(b *duo) { b.AddUser("app", "late"+miniosim.Disabled) }, "user late (",
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				test.lose(b)
				b.Point(toHA)
				b.asks()
				r := b.start()
				b.held(journal.StepCompareMinio, MinioNothingLacks, test.want)
				test.again(b)
				b.force(r)
				b.Pass(2 * time.Minute)
				b.held(journal.StepCompareMinio, MinioNothingLacks, test.want)
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false, claim false`)
			})
		})
	}
}

// TestWhatWasCopiedFromAnotherStoreIsNotRemovedUnasked: the volume of the single one is empty, and
// the copy is all that there is.
func TestWhatWasCopiedFromAnotherStoreIsNotRemovedUnasked(t *testing.T) {
	for name, source := range map[string]string{"another one": "store-1", "nobody knows which": ""} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				b.Pass(time.Hour)
				b.Move(s3sim.New())
				b.KillSingle()
				b.Pass(time.Minute)
				before := b.Target.Dump()
				b.asksWith(journal.MinioMigrate{Ours: time.Now().Add(-30 * time.Minute), Source: source, Target: "target-1"})
				r := b.start()
				b.held(journal.StepPrepareMinio, MinioNothingForeign, "bucket kept")
				if got := b.Target.Dump(); got != before {
					t.Errorf("it has %s now, want %s", got, before)
				}
				r.Halt()
			})
		})
	}
}

func versionOf(t *testing.T, b *duo, bucket, key string) string {
	t.Helper()
	for v, err := range b.Source.Versions(t.Context(), bucket, "") {
		if err != nil {
			t.Fatal(err)
		}
		if v.Key == key {
			return v.ID
		}
	}
	t.Fatalf("there is no %s/%s", bucket, key)
	return ""
}

// TestWhatAnOlderEKCOCopiedIsNotForeign: it copied the newest versions alone, as new objects.
func TestWhatAnOlderEKCOCopiedIsNotForeign(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "both", "text", s3.Attributes{Headers: map[string]string{"X-Amz-Meta-Colour": "blue"}}, time.Now().Add(-time.Hour))
		b.Target.AddBucket(plain, nil)
		b.Target.AddBucket(kept, nil)
		b.Target.Write(plain, "both", "text", s3.Attributes{}, time.Now())
		b.Target.Write(kept, "document-0", "text 2", s3.Attributes{}, time.Now())
		b.asks()
		b.ends(b.start(), handedOver)
	})
}

// withIAM is a store with these policies.
type withIAM struct {
	plainStore
	iam *s3.IAM
}

func (w withIAM) ExportIAM(context.Context) (*s3.IAM, error) { return w.iam, nil }

func newWithIAM(t *testing.T, policies string) withIAM {
	t.Helper()
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for name, content := range map[string]string{
		"policies": policies, "users": "{}", "groups": "{}", "svcaccts": "{}", "user_mappings": "{}", "group_mappings": "{}", "stsuser_mappings": "{}",
	} {
		file, err := files.Create("iam-assets/" + name + ".json")
		if err == nil {
			_, err = file.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	iam, err := s3.ReadIAM(archive.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return withIAM{plainStore{s3sim.New()}, iam}
}

// TestThePoliciesOfAnotherReleaseAreNotForeign: every server has them. Before the single MinIO is deleted they count.
func TestThePoliciesOfAnotherReleaseAreNotForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newWithIAM(t, `{"readonly":{"a":1},"own":{"a":1},"alone":{}}`), newWithIAM(t, `{"readonly":{"a":2},"own":{"a":2}}`)
		for isCopy, want := range map[bool]int{true: 1, false: 2} {
			var found journal.MinioFound
			if err := addChanged(t.Context(), one, other, isCopy, &found); err != nil || found.Count != want || len(found.Names) != want || !strings.HasPrefix(found.Names[want-1], "policy own (") && !strings.HasPrefix(found.Names[0], "policy own (") {
				t.Errorf("a copy %t: %v, %+v", isCopy, err, found)
			}
		}
	})
}
