package minio

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// inADuo runs a test with both MinIOs, and an application that writes all the time. In the
// end nothing that was acknowledged may be missing, nothing deleted may be back, and no
// secret anywhere.
func inADuo(t *testing.T, test func(b *duo)) {
	t.Helper()
	inADuoOf(t, 500*time.Millisecond, test)
}

// inADuoOf is inADuo with an application that writes so often.
func inADuoOf(t *testing.T, every time.Duration, test func(b *duo)) {
	t.Helper()
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		b.writer = b.Application(w.T.Context(), plain, every)
		test(b)
		w.Pass(10 * time.Second)
		b.writer.Stop()
		store := b.Source
		if b.ServiceLeads() == minio.App {
			store = b.Target
		}
		if missing := b.writer.Missing(store); missing != "" || b.writer.Wrote() < 20 {
			t.Errorf("of %d operations: %s\n%s", b.writer.Wrote(), missing, strings.Join(w.Story(), "\n"))
		}
		b.nothingSecret()
	})
}

// ends expects the end of the migration.
func (b *duo) ends(r *actionstest.Running, outcome string) {
	b.T.Helper()
	r.End()
	if got := b.outcome(); !strings.HasPrefix(got, outcome) {
		b.T.Errorf("%s, %s\n%s", b.LastLine(), got, strings.Join(b.Story(), "\n"))
	}
}

// backs expects that the Service leads to the single MinIO.
func (b *duo) backs() {
	b.T.Helper()
	if got := b.ServiceLeads(); got != "minio" {
		b.T.Fatalf("the Service leads to %q\n%s", got, strings.Join(b.Story(), "\n"))
	}
}

func TestTheSingleMinIOIsMigratedWhileAnApplicationWrites(t *testing.T) {
	inADuoOf(t, 50*time.Millisecond, func(b *duo) {
		b.AddUser("app", "another")
		r := b.start()
		b.comes("done cut-over")
		if occupied := b.Occupied(); len(occupied) != 0 {
			t.Errorf("it occupies %v", occupied)
		}
		b.held(journal.StepAwaitServedMinio, MinioKeptLongEnough, "waits until it has lasted 10m0s")
		if b.Object(minio.DeploymentRef(miniosim.Namespace)) == nil {
			t.Error("the single one was deleted at once")
		}
		b.ends(r, handedOver)
		if b.LastLine() != "ended done" || b.writer.Outage > 5*time.Second || !b.SameIAM() {
			t.Errorf("%s; nothing could be written for %s", b.LastLine(), b.writer.Outage)
		}
		if settings, err := b.Target.Settings(b.T.Context(), kept); err != nil || settings[s3.Lifecycle] != "<expire/>" {
			t.Errorf("%v: settings are %v", err, settings)
		}
	})
}

// TestTheCrashMatrixOfAMigration: nobody writes, so that all runs are alike.
func TestTheCrashMatrixOfAMigration(t *testing.T) {
	scene := func(points int, ask func(b *duo)) actionstest.Scene {
		return actionstest.Scene{Points: points, Once: true, Set: func(w *actionstest.World) actionstest.Stage {
			b := grown(w)
			b.migration.KeepSource = 10 * time.Second // each look costs this test time
			ask(b)
			return actionstest.Stage{
				Kinds:   func(f *actionstest.Fuse) []actions.Definition { return b.definitions(f) },
				Outcome: b.outcome,
			}
		}}
	}
	actionstest.Scenes{
		"all of it": scene(80, (*duo).asks),
		"only the hand-over, without a claim": scene(12, func(b *duo) {
			b.copied()
			b.Point(`{"app":"ha-minio"}`)
			b.Remove(minio.SingleClaimRef(miniosim.Namespace))
			b.asksWith(journal.MinioMigrate{Switched: true, From: b.deployment(), Fingerprint: b.fingerprint(), Target: "target-1"})
		}),
		"somebody else's switch": scene(14, func(b *duo) {
			b.copied()
			b.Point(`{"app":"ha-minio"}`)
			b.asks()
		}),
		"forced past a node that is cordoned": scene(80, func(b *duo) {
			b.Cordon("a", true)
			b.asks()
			b.forced(MinioSuccessor, "cordoned a, for attempt 1", "cordoned a, for attempt 2", "cordoned a, for attempt 3")
		}),
	}.Run(t)
}

func TestAStopAtAnyTimeLeavesTheServiceWhereItServes(t *testing.T) {
	for tick := range 9 {
		t.Run(fmt.Sprintf("after %d thirds of a second", tick), func(t *testing.T) {
			inADuoOf(t, 200*time.Millisecond, func(b *duo) {
				b.Source.SetLatency(5 * time.Millisecond)
				r := b.start()
				b.comes("started cut-over")
				b.Pass(time.Duration(tick) * time.Second / 3)
				began := time.Now()
				r.Halt()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s", took)
				}
				if leads := b.ServiceLeads(); leads == "" {
					t.Fatalf("the Service leads nowhere\n%s", strings.Join(b.Story(), "\n"))
				}
				b.ends(b.start(), handedOver)
			})
		})
	}
}

func TestAStopWhileNoPodStartsGoesBack(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Stick(true)
		r := b.start()
		b.comes("noted cut-over")
		b.Pass(2 * time.Second)
		began := time.Now()
		r.Halt()
		b.backs()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		b.Stick(false)
		b.ends(b.start(), handedOver)
	})
}

func TestWhereNoOtherPodStartsItGoesBackAndHoldsAfterThreeTries(t *testing.T) {
	inADuo(t, func(b *duo) {
		r := b.start()
		b.comes("done catch-up")
		b.Stick(true)
		b.held(journal.StepCutOverMinio, MinioSuccessor, "Deployment minio has no pod")
		b.backs()
		b.Stick(false)
		b.ends(r, handedOver)
		if tries := b.Count("failed cut-over #1"); tries != 1 {
			t.Errorf("it was tried %d times", tries)
		}
	})
}

func TestAPodThatDoesNotEndHoldsItWithTheServiceAtTheSingleMinIO(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Hang(true)
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSuccessor, "is not ready: Terminating on node a")
		b.backs()
		b.Hang(false)
		b.ends(r, handedOver)
	})
}

func TestAfterThreeTriesItHolds(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Reroll(true)
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioTries, "belongs to another controller: context deadline exceeded")
		b.held(journal.StepCutOverMinio, MinioTries, "the switch failed 3 times")
		b.backs()
		b.Pass(time.Hour)
		if n := b.Count("started cut-over #4"); n != 0 {
			t.Error("it was tried again")
		}
		b.Reroll(false)
		b.Retry(r)
		b.ends(r, handedOver)
	})
}

func TestASwitchIsNotBegunWhereNoOtherPodCanStart(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(b *duo)
		want  string
	}{
		"cordoned": {func(b *duo) { b.Cordon("a", true) }, "node a is cordoned"},
		"pressure": {func(b *duo) {
			b.Edit(minio.NodeRef("a"), func(o map[string]any) {
				o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "DiskPressure", "status": "True"}}}
			})
		}, "node a has DiskPressure"},
		"gone": {func(b *duo) { b.Remove(minio.NodeRef("a")) }, "node a is gone"},
		"quota": {func(b *duo) {
			b.Put(kube.Ref{Version: "v1", Resource: "resourcequotas", Namespace: miniosim.Namespace, Name: "small"},
				`{"status":{"hard":{"pods":"3"},"used":{"pods":"7"}}}`)
		}, "quota small of namespace minio is exceeded: 7 of 3 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			inADuo(t, func(b *duo) {
				r := b.start()
				test.spoil(b)
				b.held(journal.StepCutOverMinio, MinioSuccessor, test.want)
				b.backs()
				if b.Count("started cut-over #1") != 0 {
					t.Error("it was begun")
				}
				r.Halt()
			})
		})
	}
}

// TestWhateverIsWrongItEndsOrHoldsWithTheServiceAtTheSingleMinIO: and goes on when it is
// right again.
func TestWhateverIsWrongItEndsOrHoldsWithTheServiceAtTheSingleMinIO(t *testing.T) {
	for name, test := range map[string]struct {
		after       string
		spoil, mend func(b *duo)
		// step is held so; empty where it needs no hold.
		step, preflight, reason string
		// leads is where the Service leads meanwhile; empty for the single MinIO.
		leads string
		// ends is how it ends; empty for a migration.
		ends string
	}{
		"the source's pod is killed": {"started copy", (*duo).kill, nil, "", "", "", "", ""},
		"the source is lost": {
			"done prepare", func(b *duo) { b.Stick(true); b.KillSingle() }, func(b *duo) { b.Stick(false) },
			journal.StepCutOverMinio, MinioSuccessor, "standalone MinIO, which has all data, does not serve: Deployment minio has no pod", "", "",
		},
		"the target loses its quorum": {
			"done prepare", func(b *duo) { b.silence(true) }, func(b *duo) { b.silence(false) }, journal.StepCutOverMinio, MinioHealthy, "MinIO is not healthy", "", "",
		},
		"the target loses its quorum late": {
			"done catch-up", func(b *duo) { b.silence(true) }, func(b *duo) { b.silence(false) }, journal.StepCutOverMinio, MinioHealthy, "MinIO is not healthy", "", "",
		},
		"the target does not accept the credentials": {
			"requested", func(b *duo) { b.Deny(miniosim.TargetSide, true) }, func(b *duo) { b.Deny(miniosim.TargetSide, false) },
			journal.StepPrepareMinio, MinioBothAnswer, "ha-minio does not accept the credentials", "", "",
		},
		"the source does not accept the credentials": {
			"requested", func(b *duo) { b.Deny(miniosim.SourceSide, true) }, func(b *duo) { b.Deny(miniosim.SourceSide, false) },
			journal.StepPrepareMinio, MinioBothAnswer, "standalone MinIO does not accept the credentials", "", "",
		},
		"the target has no room": {
			"requested", func(b *duo) { b.Fill(0) }, func(b *duo) { b.Fill(1 << 30) },
			journal.StepCopyMinio, MinioRoom, "has room for 0 bytes", "", "",
		},
		"the installer works on it": {
			"done prepare", func(b *duo) { b.Point(`{"app":"does-not-exist"}`) }, func(b *duo) { b.Point(`{"app":"minio"}`) },
			journal.StepCutOverMinio, MinioStillToMigrate, "the installer works on MinIO", "does-not-exist", asBefore,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inADuo(t, func(b *duo) {
				b.Source.SetLatency(time.Millisecond)
				if test.after == "requested" {
					test.spoil(b)
				}
				r := b.start()
				if test.after != "requested" {
					b.comes(test.after)
					test.spoil(b)
				}
				if test.step != "" {
					b.held(test.step, test.preflight, test.reason)
					if got, want := b.ServiceLeads(), cmp.Or(test.leads, "minio"); got != want {
						t.Errorf("the Service leads to %q, want %q", got, want)
					}
				} else {
					b.Pass(10 * time.Minute)
				}
				if test.mend != nil {
					test.mend(b)
				}
				b.Retry(r)
				b.ends(r, cmp.Or(test.ends, handedOver))
			})
		})
	}
}

func (b *duo) kill() { b.KillSingle() }

// silence has three of six replicas not answer any more.
func (b *duo) silence(silent bool) {
	for i := range 3 {
		b.Silence(i, silent)
	}
}

func TestAFullTargetCanBeForcedAndHoldsNothingElse(t *testing.T) {
	inADuo(t, func(b *duo) {
		b.Fill(5)
		r := b.start()
		b.held(journal.StepCopyMinio, MinioRoom, "has room for 5 bytes")
		b.force(r)
		b.ends(r, handedOver)
	})
}

func TestACancelledMigrationLeavesTheSingleMinIO(t *testing.T) {
	for _, after := range []string{"started copy", "done catch-up", "noted cut-over"} {
		t.Run(after, func(t *testing.T) {
			inADuo(t, func(b *duo) {
				b.Source.SetLatency(5 * time.Millisecond)
				if after == "noted cut-over" {
					b.Stick(true)
				}
				r := b.start()
				b.comes(after)
				b.Cancel(r)
				r.End()
				b.Stick(false)
				b.Pass(5 * time.Second) // so that enough is written
				if got := b.outcome(); !strings.HasPrefix(got, asBefore) && !strings.HasPrefix(got, `the Service leads to "ha-minio", Deployment true`) {
					t.Errorf("%s, %s", b.LastLine(), got)
				}
			})
		})
	}
}

// TestNothingIsLostThatNoPersonReleased: what ha-minio does not take would be deleted with the single MinIO.
func TestNothingIsLostThatNoPersonReleased(t *testing.T) {
	const secret = "secret"
	for name, test := range map[string]struct {
		names []string
		mends bool
	}{
		"a person releases it": {[]string{"object secret/a (null, ", "service account robot"}, false},
		"its owner removes it": {[]string{"object secret/a (null, "}, true},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				if !test.mends {
					b.Refused = []string{"service account robot"}
				}
				b.Source.AddBucket(secret, nil)
				b.Source.Write(secret, "a", "text", s3.Attributes{}, time.Now())
				d := &disturbed{opened: func(bucket string) error {
					if bucket == secret {
						return s3.ErrUnreadable
					}
					return nil
				}}
				d.is.Store(true)
				r := b.disturb(d)
				for _, name := range test.names {
					b.held(journal.StepCutOverMinio, MinioCarriedOver, name)
				}
				if !strings.Contains(strings.Join(w.Story(), "\n"), "warned MinioCarriedOver: not everything can be carried over: "+test.names[0]) {
					t.Error("it was not said as soon as it was known")
				}
				b.Pass(3 * time.Hour)
				b.Retry(r) // looks again
				b.Pass(time.Minute)
				b.held(journal.StepCutOverMinio, MinioCarriedOver, test.names[0])
				b.backs()
				if test.mends {
					b.Source.Delete(secret, "a", time.Now())
					b.Retry(r)
					b.comes("done cut-over")
					if left := b.cut().Uncarried; left.Count != 0 {
						t.Errorf("on record is still %+v", left)
					}
					b.ends(r, handedOver)
					return
				}
				b.Source.Write(secret, "b", "text", s3.Attributes{}, time.Now())
				b.force(r) // of what was named, which b was not
				b.Pass(time.Minute)
				b.held(journal.StepCutOverMinio, MinioCarriedOver, "object secret/b (null, ")
				b.backs()
				again := b.Source.Write(secret, "b", "the new text", s3.Attributes{}, time.Now())
				b.force(r) // nor what b is now
				b.Pass(time.Minute)
				b.held(journal.StepCutOverMinio, MinioCarriedOver, replica.Item{Bucket: secret, Version: again}.String())
				b.backs()
				b.force(r)
				b.ends(r, `the Service leads to "ha-minio", Deployment false`)
			})
		})
	}
}

func TestAnOlderServerIsOnRecordBeforeTheSwitch(t *testing.T) {
	const day, dayBefore = "2023-10-25T06:33:25Z", "2023-10-24T21:18:28Z"
	for _, test := range []struct {
		source, target string
		warns          bool
	}{
		{day, dayBefore, true},
		{dayBefore, day, false},
		{day, day, false},
		{"DEVELOPMENT", dayBefore, false},
		{day, "DEVELOPMENT", false},
	} {
		t.Run(test.source+" "+test.target, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Releases = map[string]string{miniosim.SourceSide: test.source, miniosim.TargetSide: test.target}
				b.asks()
				b.ends(b.start(), `the Service leads to "ha-minio", Deployment false`)
				story := strings.Join(w.Story(), "\n")
				warned := strings.Index(story, "warned MinioCarriedOver: ha-minio runs MinIO of "+dayBefore+", which is older than standalone MinIO, of "+day)
				if warned >= 0 != test.warns || warned > strings.Index(story, "started cut-over") {
					t.Errorf("the story says:\n%s", story)
				}
			})
		})
	}
}

func TestADeploymentThatIsThereAgainIsLeftAlone(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Remove(minio.DeploymentRef(miniosim.Namespace))
		b.Put(minio.DeploymentRef(miniosim.Namespace), `{"spec":{"replicas":1}}`)
		r.End()
		if got := b.outcome(); !strings.HasPrefix(got, `the Service leads to "ha-minio", Deployment true, claim true`) || !strings.Contains(w.LastLine(), "the claim minio-pv-claim is kept") {
			t.Errorf("%s, %s", w.LastLine(), got)
		}
	})
}

func TestADryRunMigratesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		w.Request(b.subject, journal.ActionRequested{Kind: journal.ActionMigrateMinio, DryRun: true})
		w.RunToEnd(w.Config(b.definitions(nil)))
		if w.LastLine() != "ended dry-run" || len(b.Effects()) != 0 || len(b.Target.Effects()) != 0 {
			t.Errorf("%s; %v %v", w.LastLine(), b.Effects(), b.Target.Effects())
		}
	})
}
