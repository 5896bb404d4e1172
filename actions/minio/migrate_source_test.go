package minio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// TestASourceThatComesBackAsAnotherStoreIsNotCopied: what was copied may be all that is left.
func TestASourceThatComesBackAsAnotherStoreIsNotCopied(t *testing.T) {
	for name, test := range map[string]struct{ after, step, preflight string }{
		"before the copy":       {"done prepare", journal.StepCopyMinio, MinioBothAnswer},
		"before the switch":     {"done catch-up", journal.StepCutOverMinio, MinioSuccessor},
		"in place of the first": {"noted cut-over", journal.StepCutOverMinio, MinioSuccessor},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.SetLatency(100 * time.Millisecond)
				b.Hang(test.after == "noted cut-over")
				b.asks()
				r := b.start()
				b.comes(test.after)
				b.Move(s3sim.New())
				b.Hang(false)
				if test.after != "noted cut-over" {
					b.KillSingle()
				}
				b.held(test.step, test.preflight, "its deployment id is store-2, and was store-1")
				b.backs()
				if test.after != "done prepare" && !strings.Contains(b.Target.Dump(), "document-0") {
					t.Errorf("the copy is gone:\n%s", b.Target.Dump())
				}
				r.Halt()
			})
		})
	}
}

// TestWhatTheSourceLostStaysOnTheCopy: it says that it is the same store. What no client was heard to remove is not
// removed from the copy before a person released exactly that.
func TestWhatTheSourceLostStaysOnTheCopy(t *testing.T) {
	const objects = 400
	lose := func(n int) func(b *duo) {
		return func(b *duo) {
			for i := range n {
				b.Source.Lose(plain, fmt.Sprintf("object-%04d", i), s3.NullVersion)
			}
		}
	}
	for name, test := range map[string]struct {
		lose func(b *duo)
		want string
		many bool
	}{
		"a bucket":    {func(b *duo) { b.Source.LoseBucket(kept) }, "bucket kept", false},
		"59 objects":  {lose(59), "does not have 59 items that ha-minio has, and no event reported their removal: object plain/object-000", false},
		"300 objects": {lose(300), "200 more, too many", true},
		"users":       {func(b *duo) { b.AddUser() }, "user app", false},
		"a newer object": {func(b *duo) {
			b.Source.Write(plain, "object-0000", "old", s3.Attributes{}, time.Now().Add(-time.Hour))
			lose(59)(b)
		}, "", false},
	} {
		for _, after := range []string{"done copy", "noted cut-over"} {
			t.Run(name+" after "+after, func(t *testing.T) {
				actionstest.InBubble(t, func(w *actionstest.World) {
					b := grown(w)
					for i := range objects {
						b.Source.Write(plain, fmt.Sprintf("object-%04d", i), "text", s3.Attributes{}, time.Now())
					}
					b.Source.SetLatency(time.Millisecond)
					b.Hang(true)
					b.asks()
					r := b.start()
					b.comes(after)
					test.lose(b)
					b.Hang(false)
					b.held(journal.StepCutOverMinio, MinioSourceKept, test.want)
					b.backs()
					b.Pass(3 * time.Hour)
					b.held(journal.StepCutOverMinio, MinioSourceKept, test.want)
					b.backs()
					if has := b.Target.Dump(); strings.Count(has, `"object-`) != objects || !strings.Contains(has, "document-0") {
						t.Errorf("%d objects are left of the copy", strings.Count(has, `"object-`))
					}
					b.force(r) // a person knows that it is right
					if test.many {
						b.Pass(time.Minute)
						b.held(journal.StepCutOverMinio, MinioSourceKept, test.want)
						r.Halt()
						return
					}
					b.ends(r, handedOver)
				})
			})
		}
	}
}

// TestALittleThatNobodyWasHeardToRemoveIsSetAside: a client may have removed it while EKCO was away, or the volume lost
// it.
func TestALittleThatNobodyWasHeardToRemoveIsSetAside(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Source.Write(plain, "lost", "text", s3.Attributes{}, time.Now())
		b.Source.Write(plain, "removed", "text", s3.Attributes{}, time.Now())
		b.Hang(true)
		b.asks()
		r := b.start()
		b.comes("noted cut-over")
		b.Source.Lose(plain, "lost", s3.NullVersion)
		b.Source.Delete(plain, "removed", time.Now())
		b.Hang(false)
		b.ends(r, handedOver)
		has := b.Target.Dump()
		if !strings.Contains(has, asideBucket) || !strings.Contains(has, `"plain/lost/null-`) || strings.Contains(has, `"lost"`) || strings.Contains(has, "removed") {
			t.Errorf("it has\n%s", has)
		}
		if story := strings.Join(w.Story(), "\n"); !strings.Contains(story, "warned MinioStillServed: 1 version disappeared from standalone MinIO") {
			t.Errorf("nobody is told:\n%s", story)
		}
		if n := b.Count("failed cut-over"); n != 0 {
			t.Errorf("the switch failed %d times, each with an outage", n)
		}
	})
}

// TestAClientsBucketWithTheNameIsCopied, and nothing is set aside there.
func TestAClientsBucketWithTheNameIsCopied(t *testing.T) {
	for name, handed := range map[string]bool{"copied": false, "handed over": true} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.AddBucket(asideBucket, nil)
				for i := range 120 {
					b.Source.Write(asideBucket, fmt.Sprint("theirs-", i), "text", s3.Attributes{}, time.Now())
				}
				if handed {
					b.copied()
					b.Point(toHA)
				}
				b.asks()
				b.start().End()
				if has := b.Target.Dump(); b.Object(minio.DeploymentRef(miniosim.Namespace)) != nil || has != b.Source.Dump() {
					t.Errorf("%s, and ha-minio has\n%s", b.LastLine(), has)
				}
			})
		})
	}
}

// TestAClientsBucketIsNotMixedWithWhatWasSetAside: it waits until one of both has another name.
func TestAClientsBucketIsNotMixedWithWhatWasSetAside(t *testing.T) {
	for _, step := range []string{journal.StepPrepareMinio, journal.StepCopyMinio} {
		t.Run(step, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Target.AddBucket(plain, nil)
				v := b.Target.Write(plain, "lost", "text", s3.Attributes{}, time.Now())
				if err := b.Target.SetAside(w.T.Context(), plain, v, asideBucket); err != nil {
					t.Fatal(err)
				}
				b.Target.DropBucket(plain)
				b.Source.SetLatency(100 * time.Millisecond)
				b.asks()
				r := b.start()
				if step == journal.StepCopyMinio {
					b.comes("done prepare")
				}
				b.Source.AddBucket(asideBucket, nil)
				b.Source.Write(asideBucket, "theirs", "text", s3.Attributes{}, time.Now())
				b.held(step, journal.HoldNextAttempt, errAside.Error())
				b.Pass(6 * time.Hour)
				if has := b.Target.Dump(); strings.Contains(has, "theirs") || !strings.Contains(has, "plain/lost/null-") || b.Record().Stalled != nil {
					t.Errorf("%+v, and ha-minio has\n%s", b.Record().Stalled, has)
				}
				b.Source.DropBucket(asideBucket)
				b.Retry(r)
				b.ends(r, handedOver)
			})
		})
	}
}

// TestABucketOfUnknownSettingsIsNobodys: taken for a client's it would be removed.
func TestABucketOfUnknownSettingsIsNobodys(t *testing.T) {
	store := s3sim.New()
	store.AddBucket(asideBucket, nil)
	target := &fencedStore{Store: unset{plainStore{store}}, service: newFence(newService())}
	if buckets, err := target.Buckets(t.Context()); err == nil {
		t.Errorf("there are %v", buckets)
	}
	if err := target.CreateBucket(t.Context(), asideBucket, false); err == nil || target.Store.(unset).Effects() != nil {
		t.Errorf("it is made: %v", err)
	}
}

// unset is a store that does not tell settings.
type unset struct{ plainStore }

func (unset) Settings(context.Context, string) (s3.Settings, error) {
	return nil, errors.New("no answer")
}

// TestWhatCannotBeSetAsideIsNamed, and a person decides.
func TestWhatCannotBeSetAsideIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		key        string
		attributes s3.Attributes
		taken      bool
	}{
		"a long key":            {key: strings.Repeat("x", 1015)},
		"a locked version":      {key: "lost", attributes: s3.Attributes{LegalHold: true}},
		"a client's own bucket": {key: "lost", taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				if test.taken {
					b.Source.AddBucket(asideBucket, nil)
				}
				b.Source.Write(plain, test.key, "text", test.attributes, time.Now())
				b.Source.Write(plain, "moved", "text", s3.Attributes{}, time.Now())
				b.Hang(true)
				b.asks()
				r := b.start()
				b.comes("noted cut-over")
				b.Source.Lose(plain, test.key, s3.NullVersion)
				b.Source.Lose(plain, "moved", s3.NullVersion)
				b.Hang(false)
				b.held(journal.StepCutOverMinio, MinioSourceKept, "object plain/"+test.key+" (null, ")
				b.backs()
				if named := b.cut().Lost.Count; named != 1 && !test.taken || b.cut().Lost.Store != "store-1" || !strings.Contains(b.Target.Dump(), `"`+test.key+`"`) || len(b.cut().Aside)+named != 2 {
					t.Errorf("on record is %+v, and ha-minio has\n%s", b.cut(), b.Target.Dump())
				}
				b.force(r)
				if test.attributes.LegalHold {
					b.held(journal.StepCutOverMinio, MinioCarriedOver, "object plain/lost (null")
					b.force(r)
				}
				r.End()
				has := b.Target.Dump()
				if b.Object(minio.DeploymentRef(miniosim.Namespace)) != nil || strings.Contains(has, `"`+test.key+`"`) != test.attributes.LegalHold || strings.Contains(has, `"moved"`) {
					t.Errorf("%s, and ha-minio has\n%s", b.LastLine(), has)
				}
			})
		})
	}
}

// TestRemovalsAreHeardForAsLongAsACopyTakes: connections end, and a step may take hours.
func TestRemovalsAreHeardForAsLongAsACopyTakes(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		for i := range 2300 {
			b.Source.Write(plain, fmt.Sprintf("object-%04d", i), "content", s3.Attributes{}, time.Now())
		}
		b.asks()
		b.Target.SetLatency(500 * time.Millisecond)
		r := b.start()
		b.comes("started copy")
		b.Target.SetLatency(2 * time.Minute)
		w.Pass(110 * time.Minute)
		if b.Count("done copy") != 0 || strings.Count(b.Target.Dump(), `"object-`) < 150 {
			t.Fatal("the copy is not under way")
		}
		for i := range 150 {
			b.Source.Delete(plain, fmt.Sprintf("object-%04d", i), time.Now())
		}
		b.Target.SetLatency(0)
		b.ends(r, handedOver)
	})
}

// TestNobodyWritesThroughAnotherPod: replacing one pod cuts off the clients of that one.
func TestNobodyWritesThroughAnotherPod(t *testing.T) {
	asks := func(b *duo, n int) {
		b.Edit(minio.DeploymentRef(miniosim.Namespace), func(o map[string]any) { o["spec"].(map[string]any)["replicas"] = n })
	}
	for name, test := range map[string]struct {
		spoil, mend func(b *duo)
		want        string
	}{
		"two are asked for": {func(b *duo) { asks(b, 2) }, func(b *duo) { asks(b, 1) }, "Deployment minio asks for 2 pods"},
		"somebody else's":   {func(b *duo) { b.Crowd(true) }, func(b *duo) { b.Crowd(false) }, "minio-by-hand has the label app=minio but does not belong to Deployment minio"},
	} {
		for _, after := range []string{"requested", "done catch-up", "noted cut-over"} {
			t.Run(name+" after "+after, func(t *testing.T) {
				actionstest.InBubble(t, func(w *actionstest.World) {
					b := grown(w)
					b.Hang(after == "noted cut-over")
					b.asks()
					if after == "requested" {
						test.spoil(b)
					}
					r := b.start()
					if after != "requested" {
						b.comes(after)
						test.spoil(b)
					}
					b.Hang(false)
					if after == "requested" {
						b.held(journal.StepLookBelowMinio, MinioSourceRuns, test.want)
					} else {
						b.held(journal.StepCutOverMinio, MinioSuccessor, test.want)
					}
					b.backs()
					test.mend(b)
					b.ends(r, handedOver)
				})
			})
		}
	}
}

// TestAllPodsThatServedMustBeGone: of two that a rollout has, one ends later.
func TestAllPodsThatServedMustBeGone(t *testing.T) {
	m := &migrator{api: nil}
	a := &attempt{migrator: m, state: journal.MinioCutOver{Pods: []string{"one", "two"}, Controller: "set"}}
	single := minio.Single{Deployment: "d", Replicas: 1, Pods: []minio.SinglePod{
		{Name: "new", UID: "three", Deployment: "d", Controller: "set"}, {Name: "old", UID: "two", Deployment: "d", State: journal.MinioPodEnds},
	}}
	if _, lacks, err := a.successor(t.Context(), single); lacks != "pod old has not ended yet" || err != nil {
		t.Errorf("%q, %v", lacks, err)
	}
	single.Pods[1].UID = "four"
	if _, lacks, err := a.successor(t.Context(), single); lacks != "there are 2 other pods, want one" || err != nil {
		t.Errorf("%q, %v", lacks, err)
	}
}

// TestOtherServicesThatLeadToTheSingleMinIOHoldIt: their clients reach the pod that takes the
// other's place.
func TestOtherServicesThatLeadToTheSingleMinIOHoldIt(t *testing.T) {
	other := func(name string) kube.Ref {
		ref := minio.ServiceRef(miniosim.Namespace)
		ref.Name = name
		return ref
	}
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Put(other("ha-minio"), `{"spec":{"selector":{"app":"ha-minio"}}}`)
		b.Put(other("narrower"), `{"spec":{"selector":{"app":"minio","tier":"gold"}}}`)
		b.Put(other("without"), `{"spec":{}}`)
		b.asks()
		b.Put(other("original-minio"), `{"spec":{"selector":{"app":"minio"}}}`)
		r := b.start()
		b.held(journal.StepPrepareMinio, MinioNoBypass, "without Service minio: original-minio; what")
		b.Source.SetLatency(100 * time.Millisecond)
		b.force(r)
		b.comes("started catch-up")
		b.Put(other("another"), `{"spec":{"selector":{"app":"minio"}}}`)
		b.held(journal.StepCutOverMinio, MinioNoBypass, "without Service minio: another, original-minio; what")
		b.backs()
		b.Remove(other("another"))
		b.ends(r, handedOver)
	})
}

// TestAPortOfTheNodeThatLeadsToTheSingleMinIOHoldsIt: the pod that takes the other's place has it,
// too.
func TestAPortOfTheNodeThatLeadsToTheSingleMinIOHoldsIt(t *testing.T) {
	for name, on := range map[string]func(spec map[string]any){
		"a port": func(spec map[string]any) {
			ports := []any{map[string]any{"containerPort": 9000}, map[string]any{"containerPort": 9001, "hostPort": 9001}}
			spec["containers"] = append(spec["containers"].([]any), map[string]any{"ports": ports})
		},
		"all its ports": func(spec map[string]any) { spec["hostNetwork"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				pod := minio.SinglePodRef(miniosim.Namespace, "minio-5d9c-1")
				was := b.Object(pod)["spec"]
				b.Edit(pod, func(o map[string]any) { on(o["spec"].(map[string]any)) })
				b.asks()
				r := b.start()
				b.held(journal.StepPrepareMinio, MinioNoBypass, "without Service minio: hostPort or hostNetwork of Deployment minio; what")
				b.Edit(pod, func(o map[string]any) { o["spec"] = was })
				b.ends(r, handedOver)
			})
		})
	}
}

// TestAClaimThatTheDeploymentDoesNotUseIsNotDeleted: nothing of what is on it was copied.
func TestAClaimThatTheDeploymentDoesNotUseIsNotDeleted(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Edit(minio.DeploymentRef(miniosim.Namespace), func(o map[string]any) {
			o["spec"].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"volumes": []any{
				map[string]any{"name": "data", "hostPath": map[string]any{"path": "/opt/minio"}},
				map[string]any{"name": "other", "persistentVolumeClaim": map[string]any{"claimName": "another"}},
			}}}
		})
		b.asks()
		r := b.start()
		r.End()
		if got := b.outcome(); !strings.HasPrefix(got, `the Service leads to "ha-minio", Deployment false, claim true`) {
			t.Errorf("%s, %s", b.LastLine(), got)
		}
	})
}

// TestSettingsThatAnEarlierMigrationLeftDoNotActOnCopies: it was killed before it could take them
// away, or ha-minio did not answer it any more.
func TestSettingsThatAnEarlierMigrationLeftDoNotActOnCopies(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Target.AddBucket(kept, s3.Settings{s3.Versioning: s3.VersioningEnabled, s3.Lifecycle: "<expire all/>", s3.Quota: "1"})
		b.asksWith(journal.MinioMigrate{Ours: time.Now(), Source: "store-1", Target: "target-1"})
		r := b.start()
		b.comes("started copy")
		if settings, err := b.Target.Settings(w.T.Context(), kept); err != nil || settings[s3.Lifecycle]+settings[s3.Quota] != "" {
			t.Errorf("copies go where this acts: %v, %v", settings, err)
		}
		b.ends(r, handedOver)
	})
}

// TestATaintThatNoSuccessorWouldTolerateHoldsTheSwitch: it would fail each time, with an outage.
func TestATaintThatNoSuccessorWouldTolerateHoldsTheSwitch(t *testing.T) {
	taint := func(key, effect string) map[string]any {
		return map[string]any{"key": key, "value": "gold", "effect": effect}
	}
	for name, test := range map[string]struct {
		taints      []any
		tolerations []any
		holds       string
	}{
		"for new pods":     {[]any{taint("soft", "PreferNoSchedule"), taint("tier", "NoSchedule")}, nil, "node a has the taint tier=gold:NoSchedule, which Deployment minio does not tolerate"},
		"for all pods":     {[]any{taint("tier", "NoExecute")}, nil, "node a has the taint tier=gold:NoExecute"},
		"one is tolerated": {[]any{taint("tier", "NoSchedule"), taint("other", "NoSchedule")}, []any{map[string]any{"key": "tier", "operator": "Exists"}}, "the taint other=gold:NoSchedule"},
		"all are":          {[]any{taint("tier", "NoSchedule")}, []any{map[string]any{"key": "tier", "value": "gold", "effect": "NoSchedule"}}, ""},
		"it is a wish":     {[]any{taint("soft", "PreferNoSchedule")}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Edit(minio.NodeRef("a"), func(o map[string]any) { o["spec"] = map[string]any{"taints": test.taints} })
				b.Edit(minio.SinglePodRef(miniosim.Namespace, "minio-5d9c-1"), func(o map[string]any) {
					o["spec"].(map[string]any)["tolerations"] = test.tolerations
				})
				b.asks()
				r := b.start()
				if test.holds != "" {
					b.held(journal.StepCutOverMinio, MinioSuccessor, test.holds)
					b.Edit(minio.NodeRef("a"), func(o map[string]any) { o["spec"] = map[string]any{} })
				}
				b.ends(r, handedOver)
			})
		})
	}
}

func TestANodeThatDoesNotSayThatItIsReadyHoldsTheSwitch(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		was := b.Object(minio.NodeRef("a"))["status"]
		b.Edit(minio.NodeRef("a"), func(o map[string]any) { o["status"] = map[string]any{"conditions": []any{}} })
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is not ready")
		b.Edit(minio.NodeRef("a"), func(o map[string]any) { o["status"] = was })
		b.ends(r, handedOver)
	})
}
