package minio

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// remains is what is left of the single MinIO when it is handed over.
type remains struct {
	minio.API
	single  minio.Single
	claim   minio.Claim
	exists  bool
	leads   journal.MinioService
	version string
	deleted []string
	looked  int
}

func (*remains) Read(context.Context) (journal.MinioFacts, error) { return journal.MinioFacts{}, nil }

func (r *remains) Single(context.Context) (minio.Single, error) {
	r.looked++
	return r.single, nil
}

func (r *remains) SingleClaim(context.Context) (minio.Claim, bool, error) {
	return r.claim, r.exists, nil
}

func (r *remains) DeleteSingleClaim(_ context.Context, uid string) error {
	r.deleted = append(r.deleted, uid)
	return nil
}

func (r *remains) ServiceTarget(context.Context) (journal.MinioService, string, error) {
	return r.leads, r.version, nil
}

// ours is what a migration was planned for.
var ours = journal.MinioMigratePlan{Deployment: "uid-single", Claim: "uid-claim"}

// TestOnlyTheClaimThatWasPlannedForIsDeleted, and only once nothing uses it: it has all data of
// whoever does.
func TestOnlyTheClaimThatWasPlannedForIsDeleted(t *testing.T) {
	looked := map[string]any{journal.StepDeleteMinioDeployment: journal.MinioCompared{Done: true}}
	unread := map[string]any{journal.StepCutOverMinio: journal.MinioCutOver{Unread: true}}
	for name, test := range map[string]struct {
		left    remains
		steps   map[string]any
		deletes bool
		says    string
	}{
		"it is there":                          {remains{claim: minio.Claim{UID: "uid-claim"}, exists: true}, looked, true, ""},
		"it is gone":                           {remains{}, nil, false, ""},
		"it ends":                              {remains{claim: minio.Claim{UID: "uid-claim", Ends: true}, exists: true}, nil, false, ""},
		"it is another one":                    {remains{claim: minio.Claim{UID: "uid-new"}, exists: true}, nil, false, ""},
		"the last was not read":                {remains{claim: minio.Claim{UID: "uid-claim"}, exists: true}, unread, false, "is kept: it may have the last writes"},
		"somebody else deleted the Deployment": {remains{claim: minio.Claim{UID: "uid-claim"}, exists: true}, nil, false, "client deleted Deployment minio"},
		"there is a Deployment anew":           {remains{claim: minio.Claim{UID: "uid-claim"}, exists: true, single: minio.Single{Deployment: "uid-new"}}, looked, false, "a new Deployment minio uses it"},
	} {
		t.Run(name, func(t *testing.T) {
			step := actions.StepContext{Action: recordOf(t, ours, test.steps)}
			s := deleteSingleClaim{&migrator{api: &test.left}}
			proof, err := s.Prove(t.Context(), step)
			if err != nil || proof.Done == test.deletes || !strings.Contains(string(proof.Outputs), test.says) {
				t.Errorf("before: %+v, %v", proof, err)
			}
			outputs, err := s.Do(t.Context(), step)
			if err != nil || !strings.Contains(string(outputs), test.says) || test.deletes != (len(test.left.deleted) == 1 && test.left.deleted[0] == "uid-claim") {
				t.Errorf("deleted %v, left %s, %v", test.left.deleted, outputs, err)
			}
		})
	}
}

// TestTheDeploymentIsDeletedOnceItIsNotThatOneAnyMore: one that was made since is somebody's.
func TestTheDeploymentIsDeletedOnceItIsNotThatOneAnyMore(t *testing.T) {
	for uid, done := range map[string]bool{"uid-single": false, "uid-new": true, "": true} {
		s := deleteDeployment{&migrator{api: &remains{single: minio.Single{Deployment: uid}}}}
		if proof, err := s.Prove(t.Context(), actions.StepContext{Action: recordOf(t, ours, nil)}); err != nil || proof.Done != done {
			t.Errorf("%q: %+v, %v", uid, proof, err)
		}
	}
	// What the last look left is needed also where EKCO was killed before it put on record that it is done.
	s := deleteDeployment{&migrator{api: &remains{}}}
	step := actions.StepContext{Planned: journal.PlannedStep{ID: journal.StepDeleteMinioDeployment}}
	step.Action = recordOf(t, ours, map[string]any{step.Planned.ID: journal.MinioCompared{Unread: true}})
	proof, err := s.Prove(t.Context(), step)
	if outputs, failed := s.Do(t.Context(), step); err != nil || failed != nil || !strings.Contains(string(proof.Outputs), "unread") || string(outputs) != string(proof.Outputs) {
		t.Errorf("%+v, %v; %s, %v", proof, err, outputs, failed)
	}
	// But it proves nothing long after that.
	for ago, counts := range map[time.Duration]bool{checkValidFor - time.Minute: true, checkValidFor + time.Minute: false, -time.Hour: false} {
		found := journal.MinioFound{At: time.Now().Add(-ago)}
		step.Action = recordOf(t, ours, map[string]any{step.Planned.ID: journal.MinioCompared{MinioFound: found, Done: true}})
		if proof, err := s.Prove(t.Context(), step); err != nil || !proof.Done || strings.Contains(string(proof.Outputs), "done") != counts {
			t.Errorf("%s ago: %+v, %v", ago, proof, err)
		}
	}
}

// TestTheLastLookIsLeftOutWhereTheClaimIsKept, or the plan lacks it.
func TestTheLastLookIsLeftOutWhereTheClaimIsKept(t *testing.T) {
	unread, older := recordOf(t, ours, map[string]any{journal.StepCutOverMinio: journal.MinioCutOver{Unread: true}}), recordOf(t, ours, nil)
	older.Planned, older.Plan.Steps = true, []journal.PlannedStep{{ID: journal.StepDeleteMinioDeployment, Does: journal.StepDeleteMinioDeployment}}
	for name, record := range map[string]journal.ActionRecord{"unread": unread, "an older plan": older} {
		left := &remains{}
		if _, err := (deleteDeployment{&migrator{api: left}}).checkBeforeDeletion(t.Context(), actions.StepContext{Action: record}); err != nil || left.looked != 0 {
			t.Errorf("%s: it looked %d times, %v", name, left.looked, err)
		}
	}
}

// TestWhatIsLeftIsKeptIfTheHighlyAvailableMinIOIsGone: it may be the last copy, and an action
// that waits for a StatefulSet that was deleted never ends.
func TestWhatIsLeftIsKeptIfTheHighlyAvailableMinIOIsGone(t *testing.T) {
	outcome := map[string]string{"delete deployments minio/minio": "ended done the claim minio-pv-claim is kept", "refused": "ended abandoned"}
	set := minio.StatefulSetRef(miniosim.Namespace)
	for name, remove := range map[string]func(b *duo){
		"deleted": func(b *duo) { b.Remove(set) },
		"replaced": func(b *duo) {
			b.Remove(set)
			b.Put(set, `{"metadata":{"annotations":{"kurl.sh/desired-scale":"6"}},"spec":{"replicas":0}}`)
		},
	} {
		for effect, remains := range map[string]string{"delete deployments minio/minio": "Deployment false, claim true", "refused": "Deployment true, claim true"} {
			t.Run(name+", "+effect, func(t *testing.T) {
				actionstest.InBubble(t, func(w *actionstest.World) {
					b := grown(w)
					b.copied()
					b.Point(toHA)
					b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
					reconcile := b.AfterEffect
					b.AfterEffect = func(done string) {
						if reconcile(done); done == effect {
							remove(b)
						}
					}
					if effect == "refused" {
						b.Forbid("delete deployments")
					}
					r := b.start()
					if effect == "refused" {
						b.Pass(DefaultKeepSource)
						b.comes("failed delete-deployment")
						remove(b)
					}
					r.End()
					if last := b.LastLine(); !strings.HasPrefix(last, outcome[effect]) || !strings.Contains(b.outcome(), remains) {
						t.Errorf("it ends with %s; %s", last, b.outcome())
					}
				})
			})
		}
	}
}

// TestTheSourceIsKeptWhileAnyReplicaIsLacking: what was written with a quorum of them alone is lost
// with the next one.
func TestTheSourceIsKeptWhileAnyReplicaIsLacking(t *testing.T) {
	set := minio.StatefulSetRef(miniosim.Namespace)
	scaled := func(b *duo, replicas int) {
		b.Edit(set, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = replicas })
		b.Reconcile()
	}
	for name, test := range map[string]struct{ lose, mend func(b *duo) }{
		"two do not run": {
			func(b *duo) { b.Lose("a"); b.Reconcile() },
			func(b *duo) {
				for _, i := range []int{0, 3} {
					b.Run(i, miniosim.Pod{Node: "b"})
				}
				b.Reconcile()
			},
		},
		"fewer are asked for": {func(b *duo) { scaled(b, 4) }, func(b *duo) { scaled(b, 6) }},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.copied()
				b.Point(toHA)
				test.lose(b)
				if err := b.Client(b.Objects).Healthy(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
				r := b.start()
				b.Pass(2 * DefaultKeepSource)
				b.held(journal.StepAwaitServedMinio, MinioKeptLongEnough, "only while all replicas of ha-minio")
				test.mend(b)
				b.ends(r, handedOver)
			})
		})
	}
}

// TestNoHoldAdvisesACancelThatIsRefused once something was deleted.
func TestNoHoldAdvisesACancelThatIsRefused(t *testing.T) {
	for _, past := range []bool{false, true} {
		record := recordOf(t, ours, nil)
		record.PastNoReturn = past
		verdict := (&migrator{api: led{}}).stillServed(t.Context(), record)
		if verdict.Kind != actions.VerdictHold || strings.Contains(verdict.Reason, "ekco cancel") == past {
			t.Errorf("past the point of no return %t: %+v", past, verdict)
		}
	}
}

// led is a MinIO whose Service leads to the single one.
type led struct{ minio.API }

func (led) Read(context.Context) (journal.MinioFacts, error) {
	return journal.MinioFacts{Service: journal.MinioServiceSingle}, nil
}

// TestAServiceThatWasChangedSinceEndsAHandOver, until the Deployment is gone: from then on nobody
// can have written to it.
func TestAServiceThatWasChangedSinceEndsAHandOver(t *testing.T) {
	m := &migrator{api: &remains{leads: journal.MinioServiceHA, version: "8"}}
	switched := func(version string) journal.ActionRecord {
		return recordOf(t, ours, map[string]any{journal.StepCutOverMinio: journal.MinioCutOver{Version: version}})
	}
	for version, want := range map[string]actions.VerdictKind{"8": actions.VerdictPass, "7": actions.VerdictAbandon, "": actions.VerdictPass} {
		if got := m.serviceUntouched(t.Context(), switched(version)); got.Kind != want {
			t.Errorf("known at %q: %+v", version, got)
		}
	}
	record := switched("7")
	record.Steps[journal.StepDeleteMinioDeployment] = journal.StepRecord{Attempts: 1, DoneAt: time.Now()}
	if got := m.serviceUntouched(t.Context(), record); got.Kind != actions.VerdictPass {
		t.Errorf("the Deployment is gone: %+v", got)
	}
}

// TestNothingIsComparedWhileTheServiceLeadsElsewhere: clients are at the pod that is replaced for it.
func TestNothingIsComparedWhileTheServiceLeadsElsewhere(t *testing.T) {
	for leads, compares := range map[journal.MinioService]bool{
		journal.MinioServiceHA: true, journal.MinioServiceSingle: false, journal.MinioServiceDisabled: false, journal.MinioServiceInstaller: false, "": false,
	} {
		left := &remains{leads: leads, version: "8", single: minio.Single{Deployment: "uid-single", Replicas: 1}}
		found, err := compareStores{&migrator{api: left}}.compareOnce(t.Context(), actions.StepContext{Action: recordOf(t, ours, nil)})
		var waits *actions.UnfinishedError
		if compares {
			if err != nil || !found.Unread || found.Version != "8" || found.Count != 1 {
				t.Errorf("%+v, %v", found, err)
			}
			continue
		}
		if !errors.As(err, &waits) || !waits.Waits || left.looked != 0 {
			t.Errorf("%q: it looked %d times at the single one, %v", leads, left.looked, err)
		}
	}
}

// changing is a Service that another client changes after each read.
type changing struct{ *remains }

func (c changing) ServiceTarget(context.Context) (journal.MinioService, string, error) {
	defer func() { c.version += "0" }()
	return c.leads, c.version, nil
}

// unlisted is standalone MinIO whose pods cannot be listed.
type unlisted struct{ *remains }

func (unlisted) Single(context.Context) (minio.Single, error) {
	return minio.Single{}, kube.ErrUnavailable
}

// TestAComparisonThatFailedIsNone, nor one during which the Service was changed.
func TestAComparisonThatFailedIsNone(t *testing.T) {
	left := &remains{leads: journal.MinioServiceHA, version: "8"}
	for name, api := range map[string]minio.API{"the Service was changed": changing{left}, "it failed": unlisted{left}} {
		if found, err := (compareStores{&migrator{api: api}}).compareOnce(t.Context(), actions.StepContext{Action: recordOf(t, ours, nil)}); err == nil {
			t.Errorf("%s: it found %+v", name, found)
		}
	}
}

// TestWhatIsWrittenPastTheSwitchIsNotDeletedUnread: clients of another Service write to the single MinIO, which has
// all that ha-minio has for the last time then.
func TestWhatIsWrittenPastTheSwitchIsNotDeletedUnread(t *testing.T) {
	other := minio.ServiceRef(miniosim.Namespace)
	other.Name = "minio-nodeport"
	for name, test := range map[string]struct {
		step, line string
		known      func(b *duo) journal.MinioMigrate
	}{
		"EKCO's switch": {journal.StepLookBelowAgainMinio, "done cut-over", nil},
		"of an earlier one": {journal.StepLookBelowAgainMinio, "planned", func(b *duo) journal.MinioMigrate {
			return journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"}
		}},
		"of a person": {journal.StepCompareMinio, "planned", func(*duo) journal.MinioMigrate { return journal.MinioMigrate{} }},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				newest := time.Now().Truncate(time.Millisecond)
				b.Source.Write(plain, "newest", "text", s3.Attributes{}, newest)
				if test.known == nil {
					b.asks()
				} else {
					b.copied()
					b.Point(toHA)
					b.asksWith(test.known(b))
				}
				r := b.start()
				b.comes(test.line)
				b.Pass(time.Second)
				b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
				b.held(test.step, MinioNoBypass, "without Service minio: minio-nodeport")
				if test.step == journal.StepCompareMinio { // which would find it, too
					b.Source.SetLatency(time.Second)
					b.Remove(other)
					b.comes("done compare")
				}
				b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, newest.Add(time.Millisecond))
				b.Target.DeleteVersion(kept, "document-0", versionOf(w.T, b, kept, "document-0"))
				b.Target.DeleteVersion(plain, "newest", s3.NullVersion)
				b.Source.Delete(kept, "document-0", time.Now()) // as its lifecycle does
				b.Source.SetLatency(0)
				b.Remove(other)
				b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "object plain/late (null, ")
				b.Pass(2 * recheckInterval)
				if !strings.Contains(b.outcome(), "Deployment true, claim true") || !strings.Contains(string(b.Record().Steps[journal.StepCompareAgainMinio].Outputs), `"store":"store-1"`) {
					t.Fatal(b.outcome())
				}
				b.Retry(r)
				b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "object plain/late (null, ")
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false, claim false`)
			})
		})
	}
}

// TestWhatClientsDoAfterTheSwitchHoldsNothing: on ha-minio they may do anything.
func TestWhatClientsDoAfterTheSwitchHoldsNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "removed", "text", s3.Attributes{}, time.Now())
		b.Source.Write(plain, "changed", "text", s3.Attributes{}, time.Now())
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Target.DeleteVersion(plain, "removed", s3.NullVersion)
		b.Target.Write(plain, "changed", "other text", s3.Attributes{}, time.Now().Add(-2*time.Hour))
		b.set(b.Target, s3.Policy, `{"Version":"1"}`)
		b.ends(r, `the Service leads to "ha-minio", Deployment false, claim false`)
	})
}

// TestTheLastLookGoesByNoClock: another Service may have been there for a while.
func TestTheLastLookGoesByNoClock(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b *duo)
		want   string
	}{
		"an object with an earlier time": {
			func(b *duo) { b.Source.Write(plain, "late", "text", s3.Attributes{}, time.Now().Add(-time.Hour)) }, "object plain/late (null, ",
		},
		"an empty bucket": {func(b *duo) { b.Source.AddBucket("late", nil) }, "bucket late"},
		"a legal hold":    {besides(s3.Attributes{LegalHold: true}), "the [retention or legal hold] of object kept/document-0"},
		"a user":          {func(b *duo) { b.AddUser("app", "late") }, "user late"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.Write(plain, "future", "text", s3.Attributes{}, time.Now().Add(24*time.Hour))
				b.asks()
				r := b.start()
				b.comes("done cut-over")
				test.change(b)
				b.held(journal.StepCompareAgainMinio, MinioNothingLacks, test.want)
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false, claim false`)
				if b.Count("failed delete-deployment") != 0 {
					t.Error("what was released was compared once more")
				}
			})
		})
	}
}

// TestNothingIsDeletedWhenTheCopyIsGone: ha-minio got empty volumes.
func TestNothingIsDeletedWhenTheCopyIsGone(t *testing.T) {
	const want = "its deployment id is target-2, and was target-1"
	for name, test := range map[string]struct {
		step, preflight string
		known           func(b *duo) journal.MinioMigrate
		end             string
	}{
		"after the switch":  {journal.StepCompareAgainMinio, MinioNothingLacks, nil, claimKept},
		"before the switch": {journal.StepCutOverMinio, MinioSuccessor, nil, asBefore},
		"after a switch that an earlier migration made": {journal.StepCompareAgainMinio, MinioNothingLacks, func(b *duo) journal.MinioMigrate {
			return journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"}
		}, claimKept},
		"after a comparison": {journal.StepCompareAgainMinio, MinioNothingLacks, func(*duo) journal.MinioMigrate { return journal.MinioMigrate{} }, claimKept},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				if test.known != nil {
					b.copied()
					b.Point(toHA)
					b.asksWith(test.known(b))
				} else {
					b.asks()
				}
				b.migration.KeepSource = 10 * time.Second
				b.Source.SetLatency(time.Second) // it is emptied before the last look has come far
				r := b.start()
				b.comes(map[string]string{"before the switch": "done copy", "after the switch": "done cut-over", "after a comparison": "done compare"}[name])
				b.EmptyTarget()
				b.held(test.step, test.preflight, want)
				b.Pass(2 * recheckInterval)
				b.held(test.step, test.preflight, want)
				if test.end == claimKept {
					b.force(r)
					b.ends(r, claimKept)
					return
				}
				if got := b.outcome(); !strings.Contains(got, test.end) {
					t.Errorf("%s", got)
				}
				r.Halt()
			})
		})
	}
}

// TestADeploymentThatSomebodyElseDeletesKeepsItsClaim: what holds its deletion nobody has released, and it is on the
// claim.
func TestADeploymentThatSomebodyElseDeletesKeepsItsClaim(t *testing.T) {
	other := minio.ServiceRef(miniosim.Namespace)
	other.Name = "minio-nodeport"
	for _, released := range []bool{false, true} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			b.asks()
			r := b.start()
			b.comes("done cut-over")
			b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
			b.Pass(time.Minute)
			b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, time.Now())
			b.Remove(other)
			b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "plain/late")
			if released { // and something holds it after the last look
				b.Source.SetLatency(5 * time.Second)
				b.force(r)
				b.Pass(time.Second)
				b.Source.SetLatency(0)
				b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
				b.held(journal.StepDeleteMinioDeployment, MinioNoBypass, "minio-nodeport")
			}
			b.Remove(minio.DeploymentRef(miniosim.Namespace))
			b.ReconcileSingle()
			b.Remove(other)
			b.Retry(r)
			r.End()
			if last := b.LastLine(); !strings.Contains(last, "ended done the claim minio-pv-claim is kept") || !strings.Contains(b.outcome(), claimKept) {
				t.Errorf("released %t: it ends with %s; %s", released, last, b.outcome())
			}
		})
	}
}

// TestASourceThatCannotBeLookedAtLastKeepsItsClaim: nobody knows what is on it.
func TestASourceThatCannotBeLookedAtLastKeepsItsClaim(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Stick(true)
		b.KillSingle()
		b.held(journal.StepLookBelowAgainMinio, MinioNothingNested, "Deployment minio has no pod")
		b.force(r)
		b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "Deployment minio has no pod")
		b.force(r)
		b.ends(r, claimKept)
	})
}

// TestAnotherStoreInThePlaceOfTheSourceKeepsItsClaim: what EKCO copied from is gone, or elsewhere.
func TestAnotherStoreInThePlaceOfTheSourceKeepsItsClaim(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Move(s3sim.New())
		b.KillSingle()
		b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "its deployment id is store-2, and was store-1")
		b.Retry(r) // without force it looks again
		b.Pass(2 * recheckInterval)
		if got := b.outcome(); !strings.Contains(got, "Deployment true, claim true") {
			t.Fatal(got)
		}
		b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "its deployment id is store-2, and was store-1")
		b.force(r)
		r.End()
		if got := b.outcome(); !strings.Contains(got, "Deployment false, claim true") {
			t.Errorf("%s, %s", b.LastLine(), got)
		}
	})
}

// TestTheLastLookEndsWithEKCO: it may take long.
func TestTheLastLookEndsWithEKCO(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
		r := b.start()
		b.Pass(DefaultKeepSource - time.Minute)
		b.Source.SetLatency(5 * time.Second)
		b.comes("started delete-deployment")
		b.slow(true)
		b.Pass(deleteTimeout + time.Minute)
		began := time.Now()
		r.Halt()
		if took := time.Since(began); took > soon || b.Count("failed delete-deployment") != 0 {
			t.Errorf("it took %s", took)
		}
		b.slow(false)
		b.ends(b.start(), handedOver)
	})
}

// TestAPlanWithoutTheLastLookIsNotFollowed, unless something was deleted already: an earlier EKCO made it.
func TestAPlanWithoutTheLastLookIsNotFollowed(t *testing.T) {
	for does, unlooked := range map[string]bool{journal.StepDeleteMinioDeployment: true, doesLookAndDelete: false} {
		record := recordOf(t, ours, nil)
		record.Planned, record.Plan.Steps = true, []journal.PlannedStep{{ID: journal.StepLookBelowAgainMinio}, {ID: journal.StepDeleteMinioDeployment, Does: does}}
		for _, past := range []bool{false, true} {
			record.PastNoReturn = past
			verdict := (&migrator{api: led{}}).stillServed(t.Context(), record)
			if got := verdict.Kind == actions.VerdictAbandon && verdict.Key == "unlooked"; got != (unlooked && !past) {
				t.Errorf("%s, past the point of no return %t: %+v", does, past, verdict)
			}
		}
	}
}

// TestAServiceThatComesDuringTheLastLookHoldsIt: the look may take long.
func TestAServiceThatComesDuringTheLastLookHoldsIt(t *testing.T) {
	other := minio.ServiceRef(miniosim.Namespace)
	other.Name = "minio-nodeport"
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1"})
		r := b.start()
		b.Pass(DefaultKeepSource - time.Minute)
		b.Source.SetLatency(5 * time.Second)
		b.comes("started delete-deployment")
		b.Put(other, `{"spec":{"selector":{"app":"minio"}}}`)
		b.held(journal.StepDeleteMinioDeployment, MinioNoBypass, "without Service minio: minio-nodeport")
		b.Remove(other)
		b.ends(r, handedOver)
	})
}

// TestTheClaimIsKeptWhenTheCopyIsGone: ha-minio got empty volumes while the deletion of the claim waited.
func TestTheClaimIsKeptWhenTheCopyIsGone(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		scaled := func(replicas int) {
			b.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = replicas })
			b.Reconcile()
		}
		reconcile := b.AfterEffect
		b.AfterEffect = func(done string) {
			if reconcile(done); done == "delete deployments minio/minio" {
				scaled(0)
			}
		}
		r := b.start()
		b.comes("done cut-over")
		b.Pass(DefaultKeepSource)
		b.comes("done delete-deployment")
		b.EmptyTarget()
		scaled(6)
		r.End()
		if last := b.LastLine(); !strings.Contains(last, "its deployment id is target-2, and was target-1") || !strings.Contains(b.outcome(), claimKept) {
			t.Errorf("it ends with %s; %s", last, b.outcome())
		}
	})
}

// TestADeletionThatIsRefusedProvesNothingLater: clients may write until somebody else deletes the Deployment.
func TestADeletionThatIsRefusedProvesNothingLater(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			b.asks()
			b.Forbid("delete deployments")
			r := b.start()
			b.comes("done cut-over")
			b.Pass(DefaultKeepSource)
			b.comes("failed delete-deployment")
			if restarts {
				r.Halt()
				b.Pass(24 * time.Hour)
			}
			b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, time.Now())
			b.Remove(minio.DeploymentRef(miniosim.Namespace))
			b.ReconcileSingle()
			if restarts {
				r = b.start()
			} else {
				b.Retry(r)
			}
			r.End()
			if last := b.LastLine(); !strings.Contains(last, "ended done the claim minio-pv-claim is kept") || !strings.Contains(b.outcome(), claimKept) {
				t.Errorf("restarts %t: it ends with %s; %s", restarts, last, b.outcome())
			}
		})
	}
}

// TestTheLastComparisonCanBeCancelled: what it finds may be too much to release.
func TestTheLastComparisonCanBeCancelled(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Source.Write(plain, "late", "acknowledged", s3.Attributes{}, time.Now())
		b.held(journal.StepCompareAgainMinio, MinioNothingLacks, "object plain/late (null, ")
		if _, err := fsm.Cancel(b.Folded(), b.Record().ID, "too much", "cli:me@here"); err != nil {
			t.Error(err)
		}
		b.Cancel(r)
		r.End()
		if last := b.LastLine(); !strings.HasPrefix(last, "ended cancelled") || !strings.Contains(b.outcome(), `leads to "ha-minio", Deployment true, claim true`) {
			t.Errorf("it ends with %s; %s", last, b.outcome())
		}
	})
}

// TestAnEmptyCopyIsNoticedInAComparison: ha-minio gets empty volumes while the pod of standalone MinIO is replaced.
func TestAnEmptyCopyIsNoticedInAComparison(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asks()
		empty, reconcile := sync.OnceFunc(b.EmptyTarget), b.AfterEffect
		b.AfterEffect = func(effect string) {
			if reconcile(effect); strings.Contains(effect, "pods minio/minio-") {
				empty()
			}
		}
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "its deployment id is target-2, and was target-1")
		b.Pass(2 * recheckInterval)
		b.held(journal.StepCompareMinio, MinioNothingLacks, "its deployment id is target-2, and was target-1")
		r.Halt()
	})
}

// TestADeploymentThatIsNewMayHaveAnotherStore: an installer made it after an earlier migration.
func TestADeploymentThatIsNewMayHaveAnotherStore(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.copied()
		b.Point(toHA)
		b.asksWith(journal.MinioMigrate{Switched: true, From: "uid-before", Version: b.version(), Fingerprint: b.fingerprint(), Target: "target-1", Source: "store-0"})
		b.ends(b.start(), handedOver)
	})
}

// unanswered is an API server that deletes a Deployment and gives no answer.
type unanswered struct{ minio.API }

func (u unanswered) DeleteDeployment(ctx context.Context, uid string) error {
	return errors.Join(u.API.DeleteDeployment(ctx, uid), kube.ErrUnavailable)
}

// TestADeletionWithoutAnAnswerCounts: EKCO deleted the Deployment, and not somebody else.
func TestADeletionWithoutAnAnswerCounts(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		m := &migrator{api: unanswered{b.Client(b.Objects)}, changed: func() {}, listener: &listener{}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		b.ends(b.Start(b.Config([]actions.Definition{migrateDefinition(m)})), handedOver)
	})
}
