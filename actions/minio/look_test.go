package minio

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// restarts has the server of a replica be started anew, in the same pod.
func (s *store) restarts(i int) {
	s.Edit(minio.PodRef(miniosim.Namespace, i), func(object map[string]any) {
		status := object["status"].(map[string]any)
		before := 0.0
		if all, is := status["containerStatuses"].([]any); is {
			before = all[0].(map[string]any)["restartCount"].(float64)
		}
		status["containerStatuses"] = []any{map[string]any{"name": "minio", "restartCount": before + 1}}
	})
}

// asking calls do before the nth question about a pass.
func (s *store) asking(nth int, do func()) {
	s.BeforeAsk(func() {
		if nth--; nth == 0 {
			do()
		}
	})
}

// inCrowd runs a test in which the first of four replicas on one node is to be moved.
func inCrowd(t *testing.T, test func(s *store)) {
	t.Helper()
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		test(s)
		all := w.Logged()
		for _, event := range w.Events() {
			raw, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			all += string(raw)
		}
		for _, secret := range miniosim.Secrets() {
			if strings.Contains(all, secret) {
				t.Error("a secret is in the journal or in the log")
			}
		}
	})
}

func (s *store) start() *actionstest.Running { return s.Start(s.Config(s.definitions())) }

// TestWhatRestoringLeftOutIsRestoredBeforeAMoveIsOver: MinIO says that it is done, and is not.
func TestWhatRestoringLeftOutIsRestoredBeforeAMoveIsOver(t *testing.T) {
	inCrowd(t, func(s *store) {
		s.FillEarly(7)
		r := s.start()
		s.comes(journal.StepAwaitMinioPod, MinioReplicaBack, "waits until it has lasted 30s")
		for range 600 { // that hold can be from before the server notices that its drive is new
			if s.Lacks(0) == 7 {
				break
			}
			s.Pass(time.Second)
		}
		s.Pass(DefaultHealSettleTime / 2)
		if s.Lacks(0) != 7 || s.Passes() != 1 {
			t.Errorf("it lacks %d objects, after %d passes\n%s", s.Lacks(0), s.Passes(), strings.Join(s.Story(), "\n"))
		}
		r.End()
		if s.Lacks(0) != 0 || s.LastLine() != "ended done" {
			t.Errorf("%s, and it lacks %d objects", s.LastLine(), s.Lacks(0))
		}
		if !strings.Contains(s.payloads(), `"restored":7`) {
			t.Errorf("it does not say what was restored: %s", s.payloads())
		}
	})
}

// payloads returns those of all events.
func (s *store) payloads() (all string) {
	for _, event := range s.Events() {
		all += string(event.Payload) + "\n"
	}
	return all
}

func TestAReplicaIsBackOnlyOnceNoDriveLacksAnything(t *testing.T) {
	inCrowd(t, func(s *store) {
		s.FillEarly(7)
		s.Spoil(3)
		r := s.start()
		s.comes(journal.StepLookAfterMinio, MinioReplicaBack, `MinIO could not restore a part of 3 objects: 3 on ha-minio-0 (missing); one is "data/object-0"; EKCO checks again at `)
		s.Pass(time.Hour)
		s.held(journal.StepLookAfterMinio, MinioReplicaBack, "of 3 objects")
		events := len(s.Events())
		s.Pass(time.Hour)
		if more := len(s.Events()) - events; more > 12 {
			t.Errorf("an hour of waiting is %d events", more)
		}
		s.Spoil(0)
		s.Retry(r) // looks at once, and not when it would
		if took := r.End(); s.Lacks(0) != 0 || s.LastLine() != "ended done" || took > 2*DefaultHealSettleTime {
			t.Errorf("%s after %s, and it lacks %d objects", s.LastLine(), took, s.Lacks(0))
		}
		if at := s.Passers(); slices.Contains(at, "ha-minio-0") {
			t.Errorf("passes were made by %q: what the replica that moves lists is in doubt", at)
		}
	})
}

// TestARunningReplicaIsTakenAwayOnlyOnceAllDrivesHaveAllObjects, and that was seen: whatever
// keeps it from being seen holds the move before anything is deleted, until it has passed.
func TestARunningReplicaIsTakenAwayOnlyOnceAllDrivesHaveAllObjects(t *testing.T) {
	secret := minio.SecretRef(miniosim.Namespace)
	for name, test := range map[string]struct {
		prepare, mend func(s *store)
		reason        string
	}{
		"a drive lacks some":    {func(s *store) { s.LosePart(2, 5); s.Spoil(2) }, func(s *store) { s.Spoil(0) }, "MinIO could not restore a part of 2 objects: 2 on ha-minio-2 (missing)"},
		"the list is cut short": {func(s *store) { s.CutPasses(4) }, func(s *store) { s.CutPasses(0) }, "MinIO did not check 8 objects"},
		"another client looks":  {func(s *store) { s.BusyWithPasses(true) }, func(s *store) { s.BusyWithPasses(false) }, "another client runs a check of all objects"},
		"credentials":           {func(s *store) { s.DenyHealer(true) }, func(s *store) { s.DenyHealer(false) }, "does not accept the credentials of Secret minio-credentials"},
		"no Secret": {func(s *store) { s.Remove(secret) }, func(s *store) {
			s.Put(secret, `{"data":{"MINIO_ACCESS_KEY":"a3VybA==","MINIO_SECRET_KEY":"czNjcjN0LW9mLWJvdGg="}}`)
		}, "with the credentials of Secret minio-credentials: "},
		"a server forgets, always": {func(s *store) { s.BeforeAsk(s.ForgetPasses) }, func(s *store) { s.BeforeAsk(nil) }, "MinIO no longer knows"},
		"somebody stops it":        {func(s *store) { s.BeforeAsk(s.StopPasses) }, func(s *store) { s.BeforeAsk(nil) }, "MinIO no longer knows"},
		"answers are lost":         {func(s *store) { s.LoseAnswers(1000) }, func(s *store) { s.LoseAnswers(0) }, "cannot check that all drives have all objects: connection reset"},
		"a replica is started anew": {
			func(s *store) { s.BeforeAsk(func() { s.restarts(3) }) }, func(s *store) { s.BeforeAsk(nil) }, "ha-minio-3 was restarted, or ended, after the check",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCrowd(t, func(s *store) {
				test.prepare(s)
				r := s.start()
				s.comes(journal.StepLookBeforeMinio, MinioCanSpare, test.reason)
				s.Pass(10 * time.Minute)
				if len(s.took()) != 0 {
					t.Errorf("deleted were %q", s.took())
				}
				test.mend(s)
				s.AfterEffect = func(string) {
					for i := range 6 {
						if s.Lacks(i) != 0 {
							t.Errorf("ha-minio-%d lacks %d objects when the first is taken away", i, s.Lacks(i))
						}
					}
					s.ReconcileAfter(time.Second)
					time.AfterFunc(time.Second, s.Reconcile)
				}
				s.Retry(r)
				r.End()
				if s.LastLine() != "ended done" || !slices.Equal(s.took(), both) {
					t.Errorf("%s; deleted were %q", s.LastLine(), s.took())
				}
			})
		})
	}
}

// The answer may be lost at any question: EKCO then does not know what it contained.
func TestAnAnswerThatIsLostIsNoticed(t *testing.T) {
	for _, nth := range []int{1, 2, 3} { // the last ends the pass
		inCrowd(t, func(s *store) {
			s.asking(nth, func() { s.LoseAnswers(1) })
			r := s.start()
			s.comes(journal.StepLookBeforeMinio, MinioCanSpare, "an answer was lost")
			r.End()
			if s.LastLine() != "ended done" || s.Passes() != 3 {
				t.Errorf("%s after %d passes", s.LastLine(), s.Passes())
			}
		})
	}
}

func TestAReplicaThatWasStartedSinceEndsAMoveThatHasDeletedNothing(t *testing.T) {
	inCrowd(t, func(s *store) {
		s.asking(1, func() { s.Silence(3, true) })
		r := s.start()
		s.comes(journal.StepDeleteMinioClaim, MinioCanSpare, "ha-minio-3")
		s.restarts(3)
		s.Silence(3, false)
		r.End()
		if last := s.last(); !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, "ha-minio-3 was restarted") || len(s.took()) != 0 {
			t.Errorf("it ends with %s after %q", last, s.took())
		}
	})
}

// TestBetweenClaimAndPodItIsLookedAgainOnceAReplicaWasStarted: the drive goes with the pod.
func TestBetweenClaimAndPodItIsLookedAgainOnceAReplicaWasStarted(t *testing.T) {
	inCrowd(t, func(s *store) {
		s.AfterEffect = func(string) {
			s.AfterEffect = nil
			s.restarts(3)
			s.LosePart(3, 4)
			s.Spoil(1)
			s.BeforeAsk(func() {
				if occupied := s.Occupied(); len(occupied) != 0 {
					t.Errorf("while MinIO looks at all objects it occupies %v", occupied)
				}
			})
		}
		r := s.start()
		s.Pass(time.Hour)
		s.held(journal.StepLookBeforeMinio, actions.HoldNextAttempt, `MinIO could not restore a part of 1 object: 1 on ha-minio-3 (missing)`)
		if len(s.took()) != 1 || s.pod(0).State != journal.MinioPodRuns {
			t.Errorf("deleted were %q", s.took())
		}
		s.ReconcileAfter(time.Second)
		s.Spoil(0)
		r.End()
		if s.LastLine() != "ended done" || !slices.Equal(s.took(), both) || s.Lacks(3) != 0 {
			t.Errorf("%s; deleted were %q; ha-minio-3 lacks %d", s.LastLine(), s.took(), s.Lacks(3))
		}
	})
}

// TestAfterALookBetweenClaimAndPodItIsAskedAgainWhetherTheReplicaCanBeSpared: it takes its time.
func TestAfterALookBetweenClaimAndPodItIsAskedAgainWhetherTheReplicaCanBeSpared(t *testing.T) {
	inCrowd(t, func(s *store) {
		s.AfterEffect = func(string) {
			s.AfterEffect = nil
			s.restarts(3)
			s.asking(1, func() { s.Silence(4, true) })
		}
		r := s.start()
		s.Pass(10 * time.Minute)
		s.held(journal.StepDeleteMinioPod, MinioCanSpare, "ha-minio-4: ask MinIO")
		if len(s.took()) != 1 {
			t.Errorf("deleted were %q", s.took())
		}
		s.ReconcileAfter(time.Second)
		s.Silence(4, false)
		r.End()
		if s.LastLine() != "ended done" || !slices.Equal(s.took(), both) {
			t.Errorf("%s; deleted were %q", s.LastLine(), s.took())
		}
	})
}

func TestAllReplicasMustRunForALookAndBeThoseOfIt(t *testing.T) {
	inCrowd(t, func(s *store) {
		all := &dataChecker{api: s.Client(s.Objects), healers: s.MinIO}
		running, err := all.api.Running(t.Context())
		if err != nil || len(running) != 6 {
			t.Fatal(running, err)
		}
		if err := all.requireNoRestart(t.Context(), journal.MinioLooked{Lives: lifeOfPods(running)}); err != nil {
			t.Error(err)
		}
		if err := all.requireNoRestart(t.Context(), journal.MinioLooked{Lives: lifeOfPods(running[:5])}); err == nil {
			t.Error("a replica that was not there is none that was looked at")
		}
		s.Run(3, miniosim.Pod{Message: "it waits"})
		if _, err := all.runPass(t.Context(), &passRecorder{}, ""); err == nil || !strings.Contains(err.Error(), "5 of 6 replicas run") {
			t.Errorf("with one that waits: %v", err)
		}
	})
}

// TestTheLookAfterAMoveServesTheNextUnlessAReplicaWasStarted, or it is long ago.
func TestTheLookAfterAMoveServesTheNextUnlessAReplicaWasStarted(t *testing.T) {
	for name, test := range map[string]struct {
		between func(s *store)
		passes  int
	}{
		"nothing happened":           {func(*store) {}, 3},
		"a replica was started":      {func(s *store) { s.restarts(4) }, 4},
		"it is a quarter of an hour": {func(s *store) { s.Pass(15 * time.Minute) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.placed("a", "a", "a", "a", "a", "c")
				cfg := w.Config(s.definitions())
				s.moves(0)
				w.RunToEnd(cfg)
				test.between(s)
				s.moves(1)
				w.RunToEnd(cfg)
				if w.LastLine() != "ended done" || s.Passes() != test.passes || len(s.took()) != 4 {
					t.Errorf("%s after %d passes, want %d; deleted were %q", w.LastLine(), s.Passes(), test.passes, s.took())
				}
			})
		})
	}
}

// TestAReplicaWithoutItsVolumeIsNotWaitedForUntilAllIsLookedAt: it is no replica anyway.
func TestAReplicaWithoutItsVolumeIsNotWaitedForUntilAllIsLookedAt(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.orphaned()
		s.LosePart(2, 3)
		passes := -1
		s.AfterEffect = func(string) {
			passes = max(passes, s.Passes())
			time.AfterFunc(time.Second, s.Reconcile)
		}
		s.moves(0)
		w.RunToEnd(w.Config(s.definitions()))
		if w.LastLine() != "ended done" || passes != 0 || s.Lacks(2) != 0 {
			t.Errorf("%s; %d passes before it was deleted; ha-minio-2 lacks %d", w.LastLine(), passes, s.Lacks(2))
		}
	})
}

// TestAnEKCOThatIsKilledInAPassGoesOnWithoutWaitingForItself: its pass is still under way.
func TestAnEKCOThatIsKilledInAPassGoesOnWithoutWaitingForItself(t *testing.T) {
	inCrowd(t, func(s *store) {
		var r *actionstest.Running
		begun := make(chan struct{})
		s.asking(2, func() { <-begun; r.Stop() })
		r = s.start()
		close(begun)
		_ = r.Wait()
		if s.Passes() != 1 || len(s.took()) != 0 {
			t.Fatalf("it was killed after %d passes; deleted were %q", s.Passes(), s.took())
		}
		r = s.start()
		r.End()
		if story := strings.Join(s.Story(), "\n"); s.LastLine() != "ended done" || s.Passes() != 3 || strings.Contains(s.payloads(), "another client") {
			t.Errorf("%d passes\n%s", s.Passes(), story)
		}
	})
}

func TestALookThatIsOldCountsNoMore(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		s.asking(1, func() { s.Silence(3, true) })
		r := w.Start(w.Config(s.definitions()))
		w.Pass(maxCheckAge + 5*time.Minute)
		s.held(journal.StepDeleteMinioClaim, MinioCanSpare, "ha-minio-3: ask MinIO")
		s.Silence(3, false)
		r.End()
		if len(s.took()) != 0 || !strings.Contains(s.last(), `"abandoned"`) || !strings.Contains(s.last(), "more than 30m0s have passed") {
			t.Errorf("deleted were %q: %s", s.took(), s.last())
		}
	})
}

func TestAMoveThatAnEarlierEKCOPlannedTakesNothingAwayUnlooked(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		old := s.definitions()
		for i, kind := range old {
			plan := kind.Plan
			old[i].Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
				made, err := plan(ctx, record)
				isLook := func(step string) bool { return strings.HasPrefix(step, "look-") }
				made.Steps = slices.DeleteFunc(made.Steps, func(step journal.PlannedStep) bool { return isLook(step.ID) })
				for i := range made.Steps {
					made.Steps[i].After = slices.DeleteFunc(made.Steps[i].After, isLook)
				}
				return made, err
			}
		}
		w.RunToEnd(w.Config(old))
		if len(s.took()) != 0 || !strings.Contains(s.last(), `"abandoned"`) || !strings.Contains(s.last(), "an earlier version of EKCO planned this action") {
			t.Errorf("deleted were %q: %s", s.took(), s.last())
		}
	})
}

// TestALookThatTakesHoursCounts: it is as old as its end.
func TestALookThatTakesHoursCounts(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.BeforeAsk(func() { time.Sleep(maxCheckAge) })
		s.moves(0)
		w.RunToEnd(w.Config(s.definitions()))
		if !slices.Equal(s.took(), both) || w.LastLine() != "ended done" {
			t.Errorf("deleted were %q: %s", s.took(), w.LastLine())
		}
	})
}
