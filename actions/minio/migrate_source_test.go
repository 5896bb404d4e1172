package minio

import (
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

// TestASourceThatLosesMuchWhileNobodyWritesIsNotMirrored: it says it is the same one.
func TestASourceThatLosesMuchWhileNobodyWritesIsNotMirrored(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(b *duo)
		want string
	}{
		"a bucket": {func(b *duo) { b.Source.DropBucket(kept) }, "the single MinIO lacks bucket kept, which it had shortly before; ha-minio still has it, and may be the last that does"},
		"many objects": {func(b *duo) {
			for i := range 100 {
				b.Source.DeleteVersion(plain, fmt.Sprintf("object-%03d", i), s3.NullVersion)
			}
		}, "which it had shortly before; 22 versions that it lacks too had been removed from ha-minio until then; ha-minio still has it"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				for i := range 100 {
					b.Source.Write(plain, fmt.Sprintf("object-%03d", i), "text", s3.Attributes{}, time.Now())
				}
				b.Hang(true)
				b.asks()
				r := b.start()
				b.comes("noted cut-over")
				test.lose(b)
				b.Hang(false)
				b.held(journal.StepCutOverMinio, MinioSourceKept, test.want)
				b.backs()
				if left := strings.Count(b.Target.Dump(), "object-"); left < 75 || !strings.Contains(b.Target.Dump(), "document-0") {
					t.Errorf("%d objects are left of the copy", left)
				}
				b.Pass(time.Hour)
				b.backs()
				b.force(r) // somebody knows that it is right
				b.ends(r, handedOver)
			})
		})
	}
}

// TestASourceThatLosesItsUsersWhileNobodyWritesIsNotMirrored: who has a key of his own would
// be locked out.
func TestASourceThatLosesItsUsersWhileNobodyWritesIsNotMirrored(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Hang(true)
		b.asks()
		r := b.start()
		b.comes("noted cut-over")
		b.AddUser() // none is left
		b.Hang(false)
		b.held(journal.StepCutOverMinio, MinioSourceKept, "the single MinIO lacks user app, which it had shortly before; ha-minio still has it")
		b.backs()
		if b.SameIAM() {
			t.Error("the users of the copy are gone too")
		}
		b.force(r) // somebody knows that it is right
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
		"somebody else's":   {func(b *duo) { b.Crowd(true) }, func(b *duo) { b.Crowd(false) }, "minio-by-hand has the label app=minio and is not of Deployment minio"},
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
		b.held(journal.StepPrepareMinio, MinioNoBypass, "leads to the single MinIO: original-minio; its clients")
		b.Source.SetLatency(100 * time.Millisecond)
		b.force(r)
		b.comes("started catch-up")
		b.Put(other("another"), `{"spec":{"selector":{"app":"minio"}}}`)
		b.held(journal.StepCutOverMinio, MinioNoBypass, "leads to the single MinIO: another, original-minio; its clients")
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
				b.held(journal.StepPrepareMinio, MinioNoBypass, "leads to the single MinIO: hostPort or hostNetwork of Deployment minio; its clients")
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
		b.asks()
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
