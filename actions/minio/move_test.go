package minio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// placed has six replicas run on these nodes.
func (s *store) placed(nodes ...string) {
	s.replicas(len(nodes))
	for i, node := range nodes {
		s.Run(i, miniosim.Pod{Node: node})
	}
	s.Reconcile()
	s.HealFor(5 * time.Minute)
}

// crowded has four replicas on a, one on b and one on c.
func (s *store) crowded() { s.placed("a", "a", "a", "a", "b", "c") }

// moves asks for the move of a replica as it is.
func (s *store) moves(i int) journal.MinioPod {
	s.T.Helper()
	pod := s.pod(i)
	s.ask(journal.ActionMoveMinio, journal.MinioMove{Pod: pod})
	return pod
}

func (s *store) pod(i int) journal.MinioPod {
	s.T.Helper()
	facts, err := s.Client(s.Objects).Read(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	for _, pod := range facts.Pods {
		if pod.Name == fmt.Sprintf("ha-minio-%d", i) {
			return pod
		}
	}
	return journal.MinioPod{}
}

// orphaned has node a lost for good, on which one replica was, whose pod was freed.
func (s *store) orphaned() {
	s.placed("a", "b", "b", "b", "c", "c")
	s.Lose("a")
	s.kube.RemoveNode("a")
	s.Remove(minio.PodRef(miniosim.Namespace, 0))
	s.Reconcile()
}

// took returns what was deleted, each once.
func (s *store) took() (deleted []string) {
	for _, effect := range s.Effects() {
		if effect.Changed {
			deleted = append(deleted, effect.Name)
		}
	}
	return deleted
}

var both = []string{"delete persistentvolumeclaims minio/minio-data-ha-minio-0", "delete pods minio/ha-minio-0"}

// held expects the step to be held so.
func (s *store) held(step, preflight, reason string) {
	s.T.Helper()
	if held := s.Record().Holds[step]; held.Preflight != preflight || !strings.Contains(held.Reason, reason) {
		s.T.Errorf("%s is held by %+v, want %s: %s", step, held, preflight, reason)
	}
}

// comes waits until the step is held so.
func (s *store) comes(step, preflight, reason string) {
	s.T.Helper()
	for range 1000 {
		held := s.Record().Holds[step]
		if held.Preflight == preflight && strings.Contains(held.Reason, reason) {
			return
		}
		s.Pass(time.Second)
	}
	s.held(step, preflight, reason)
}

// moved is the end of a move: where the replicas are, and what was deleted.
func (s *store) moved() string { return fmt.Sprintf("%s %q", s.Spread(), s.took()) }

func TestTheCrashMatrixOfAMove(t *testing.T) {
	scene := func(points int, prepare func(s *store)) actionstest.Scene {
		return actionstest.Scene{Points: points, Once: true, Set: func(w *actionstest.World) actionstest.Stage {
			s := installed(w)
			prepare(s)
			s.HealFor(time.Minute)
			return actionstest.Stage{
				Kinds:   s.mortal,
				Outcome: s.moved,
			}
		}}
	}
	actionstest.Scenes{
		"of one that runs":          scene(16, func(s *store) { s.crowded(); s.moves(0) }),
		"of one without its volume": scene(16, func(s *store) { s.orphaned(); s.moves(0) }),
		"of one without its claim":  scene(12, func(s *store) { s.crowded(); s.Remove(minio.ClaimRef(miniosim.Namespace, "ha-minio-0")); s.moves(0) }),
	}.Run(t)
}

func TestAReplicaIsMovedAndItsDataAwaited(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		s.comes(journal.StepLookBeforeMinio, MinioCanSpare, "waits until it has lasted 30s")
		s.comes(journal.StepAwaitMinioPod, MinioReplicaBack, "MinIO restores the data of 1 drive, as ha-minio-1 reports")
		if got := s.Spread(); got[0] == "a" || !slices.Equal(s.took(), both) {
			t.Errorf("they are on %v after %q", got, s.took())
		}
		if occupied := w.Occupied(); len(occupied) != 0 {
			t.Errorf("while it waits it occupies %v", occupied)
		}
		s.comes(journal.StepAwaitMinioPod, MinioReplicaBack, "waits until it has lasted 30s")
		r.End()
		s.tells("done delete-claim", "done delete-pod", "held", "done await-replica", "ended done")
		if !slices.Equal(s.took(), both) || s.looks != 1 {
			t.Errorf("deleted were %q; looked %d times", s.took(), s.looks)
		}
	})
}

func TestTheSettleTimeIsWaitedForBeforeAndAfterAMove(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.settle = 3 * time.Minute
		s.crowded()
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		s.comes(journal.StepLookBeforeMinio, MinioCanSpare, "waits until it has lasted 3m0s")
		s.comes(journal.StepAwaitMinioPod, MinioReplicaBack, "waits until it has lasted 3m0s")
		r.End()
		if !slices.Equal(s.took(), both) {
			t.Errorf("deleted were %q", s.took())
		}
	})
}

// When the settle time has passed, no server has noticed the new drive yet.
func TestShortSettleTimeEndsNoMoveEarly(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.settle = time.Second
		s.crowded()
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		r.End()
		if lacks := s.Lacks(0); lacks != 0 || s.LastLine() != "ended done" {
			t.Errorf("%s, and the replica lacks %d objects", s.LastLine(), lacks)
		}
	})
}

func TestFirstPauseIsTheSettleTime(t *testing.T) {
	for _, test := range []struct {
		settle time.Duration
		tries  int
		pause  time.Duration
	}{
		{time.Minute, 0, time.Minute},
		{time.Minute, 1, time.Minute},
		{time.Minute, 2, 2 * time.Minute},
		{time.Minute, 5, 16 * time.Minute},
		{time.Minute, 6, maxCheckPause},
		{time.Minute, 1 << 62, maxCheckPause},
		{time.Second, 12, maxCheckPause},
		{time.Hour, 1, maxCheckPause},
	} {
		all, tries, pause := &dataChecker{settle: test.settle}, test.tries, test.pause
		for _, since := range []time.Duration{pause - 30*time.Second, pause} {
			outputs, err := json.Marshal(journal.MinioLooked{Lacks: "a part", Tries: tries, Since: time.Now().Add(-since)})
			if err != nil {
				t.Fatal(err)
			}
			record := journal.ActionRecord{Steps: map[string]journal.StepRecord{"look": {Attempts: 1, Outputs: outputs}}}
			if verdict := all.pauseAfter(record, "look"); (verdict.Kind == actions.VerdictPass) != (since == pause) {
				t.Errorf("%s after look %d in vain: %+v", since, tries, verdict)
			}
		}
	}
}

func TestAReplicaWithoutItsVolumeGetsAnotherAsSoonAsMinIOIsHealthy(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.orphaned()
		s.Silence(1, true)
		s.Silence(2, true)
		if pod := s.moves(0); pod.State != journal.MinioPodLacksVolume {
			t.Fatalf("it is %+v", pod)
		}
		r := w.Start(w.Config(s.definitions()))
		w.Pass(10 * time.Minute)
		s.held(journal.StepDeleteMinioClaim, MinioCanSpare, "MinIO is not healthy, and the replica's volume may be needed: ha-minio-1: ")
		s.Silence(2, false) // four of six are a quorum; nobody need be spared
		s.comes(journal.StepAwaitMinioPod, MinioReplicaBack, "has restored all data: ha-minio-1: ask MinIO at ha-minio-1")
		s.Silence(1, false)
		r.End()
		if got := s.Spread(); len(got) != 6 || !slices.Equal(s.took(), both) {
			t.Errorf("they are on %v after %q", got, s.took())
		}
	})
}

func TestARunningReplicaIsMovedOnlyWhileAllSayThatTheyCanBeSparedAndNoneIsHealed(t *testing.T) {
	for name, test := range map[string]struct {
		prepare, mend func(s *store)
		reason        string
	}{
		"one does not answer": {
			func(s *store) { s.Silence(5, true) }, func(s *store) { s.Silence(5, false) }, "ha-minio-5: ask MinIO at ha-minio-5 for its health: connection refused",
		},
		"one that is to go says no": {
			func(s *store) { s.Silence(4, true); s.Silence(5, true) }, func(s *store) { s.Silence(4, false); s.Silence(5, false) },
			"ha-minio-0 reports that MinIO cannot run without it",
		},
		"drives are healed": {func(s *store) { s.Heal(1) }, func(s *store) { s.Heal() }, "MinIO restores the data of 1 drive"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.crowded()
				test.prepare(s)
				s.moves(0)
				r := w.Start(w.Config(s.definitions()))
				w.Pass(time.Hour)
				s.held(journal.StepLookBeforeMinio, MinioCanSpare, test.reason)
				if len(s.Effects()) != 0 {
					t.Errorf("deleted were %q", s.took())
				}
				test.mend(s)
				r.End()
				if !slices.Equal(s.took(), both) {
					t.Errorf("deleted were %q", s.took())
				}
			})
		})
	}
}

func TestAReplicaWithoutItsVolumeGetsNoOtherWhileDataIsRestored(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.orphaned()
		s.Heal(1)
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		w.Pass(time.Hour)
		s.held(journal.StepDeleteMinioClaim, MinioCanSpare, "MinIO restores the data of 1 drive, as ha-minio-2 reports; the replica gets another volume when that is done")
		if len(s.Effects()) != 0 {
			t.Errorf("deleted were %q", s.took())
		}
		s.Heal()
		r.End()
		if !slices.Equal(s.took(), both) {
			t.Errorf("deleted were %q", s.took())
		}
	})
}

// TestBothReplicasOfAPurgedNodeAreMoved: the first move does not wait for the replica that is
// moved after it.
func TestBothReplicasOfAPurgedNodeAreMoved(t *testing.T) {
	for name, lose := range map[string]func(*kubesim.Cluster, string){"lost": (*kubesim.Cluster).LoseNode, "not ready": (*kubesim.Cluster).UnreadyNode} {
		t.Run(name, func(t *testing.T) { bothReplicasAreMoved(t, lose) })
	}
}

func bothReplicasAreMoved(t *testing.T, lose func(*kubesim.Cluster, string)) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.placed("a", "a", "b", "b", "c", "c")
		s.Lose("a")
		lose(s.kube, "a")
		for i := range 2 {
			s.Remove(minio.PodRef(miniosim.Namespace, i))
		}
		s.Reconcile()
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		w.Pass(2 * time.Hour)
		if last := s.LastLine(); strings.HasPrefix(last, "ended") || len(s.Spread()) != 5 {
			t.Errorf("while node a may come back: %s; they are on %v", last, s.Spread())
		}
		s.kube.RemoveNode("a")
		r.End()
		if !strings.HasPrefix(s.LastLine(), "ended done") || s.Passes() != 0 {
			t.Errorf("the first: %s after %d looks at all data", s.LastLine(), s.Passes())
		}
		s.moves(1)
		w.RunToEnd(w.Config(s.definitions()))
		if spread := s.Spread(); s.LastLine() != "ended done" || len(spread) != 6 || slices.Contains(spread, "a") || s.Passes() != 1 {
			t.Errorf("the second: %s; they are on %v after %d looks at all data", s.LastLine(), spread, s.Passes())
		}
	})
}

// TestAPodWhoseClaimIsGoneIsDeletedWithoutAnotherWait: also by an EKCO that has just started,
// and cannot know for how long nothing was restored.
func TestAPodWhoseClaimIsGoneIsDeletedWithoutAnotherWait(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		var r *actionstest.Running
		begun := make(chan struct{})
		s.AfterEffect = func(string) { <-begun; r.Stop() }
		r = w.Start(w.Config(s.definitions()))
		close(begun)
		_ = r.Wait()
		s.ReconcileAfter(time.Second)
		r = w.Start(w.Config(s.definitions()))
		w.Pass(10 * time.Second)
		if !slices.Equal(s.took(), both) {
			t.Errorf("ten seconds after a restart deleted are %q", s.took())
		}
		r.End()
	})
}

func TestOneMoreThanAQuorumStays(t *testing.T) {
	facts := journal.MinioFacts{Replicas: 6, Desired: 6}
	var said []minio.ReplicaAnswer
	for i := range 6 {
		facts.Pods = append(facts.Pods, journal.MinioPod{State: journal.MinioPodRuns})
		said = append(said, minio.ReplicaAnswer{Answer: minio.Answer{Yes: true, Code: 200, Quorum: 4}})
		if verdict := judgeWithoutOne(facts, said); (verdict.Kind == actions.VerdictPass) != (i == 5) {
			t.Errorf("%d run: %+v", i+1, verdict)
		}
	}
	said[3].Quorum = 5 // what a server says of itself counts, if it is more
	if verdict := judgeWithoutOne(facts, said); verdict.Kind != actions.VerdictHold || !strings.Contains(verdict.Reason, "6 must run, one more than the quorum of 5") {
		t.Errorf("with a quorum of 5: %+v", verdict)
	}
}

// TestBetweenClaimAndPodMinIOIsAskedAgain: the pod keeps its volume as long as it runs.
func TestBetweenClaimAndPodMinIOIsAskedAgain(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.AfterEffect = func(effect string) {
			if effect == both[0] {
				s.Silence(5, true)
				s.AfterEffect = nil
			}
		}
		s.moves(0)
		r := w.Start(w.Config(s.definitions()))
		w.Pass(time.Hour)
		s.held(journal.StepDeleteMinioPod, MinioCanSpare, "ha-minio-5")
		if len(s.took()) != 1 || s.pod(0).State != journal.MinioPodRuns {
			t.Errorf("deleted were %q", s.took())
		}
		s.ReconcileAfter(time.Second)
		s.Silence(5, false)
		r.End()
		if !slices.Equal(s.took(), both) {
			t.Errorf("deleted were %q", s.took())
		}
	})
}

func TestAMoveThatHasLostItsReasonDeletesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *store)
		reason string
	}{
		"another pod":      {func(s *store) { s.Run(0, miniosim.Pod{Node: "a"}) }, "replica ha-minio-0 is another pod now"},
		"it ends":          {func(s *store) { s.asked(0) }, "replica ha-minio-0 ends now"},
		"one node is left": {func(s *store) { s.kube.RemoveNode("b"); s.kube.RemoveNode("c") }, "spread evenly"},
		"its node is lost": {func(s *store) { s.kube.LoseNode("a"); s.kube.AddNode("d", journal.RoleWorker) }, "node a of replica ha-minio-0 is lost"},
		"the StatefulSet":  {func(s *store) { s.Remove(minio.StatefulSetRef(miniosim.Namespace)) }, "StatefulSet ha-minio is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.crowded()
				s.moves(0)
				test.change(s)
				w.RunToEnd(w.Config(s.definitions()))
				if last := s.last(); !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, test.reason) || len(s.Effects()) != 0 {
					t.Errorf("it ends with %s after %q", last, s.took())
				}
			})
		})
	}
}

// asked has somebody ask a replica to end.
func (s *store) asked(i int) {
	s.Edit(minio.PodRef(miniosim.Namespace, i), func(object map[string]any) {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
}

func TestWithNoReadyNodeNothingIsMoved(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		s.moves(0)
		for _, node := range []string{"a", "b", "c"} {
			s.kube.UnreadyNode(node)
		}
		r := w.Start(w.Config(s.definitions()))
		w.Pass(time.Hour)
		s.held(journal.StepLookBelowMinio, MinioStillToMove, "no node is ready")
		if len(s.Effects()) != 0 {
			t.Errorf("deleted were %q", s.took())
		}
		for _, node := range []string{"a", "b", "c"} {
			s.kube.ReturnNode(node)
		}
		r.End()
	})
}

// TestAMoveEndsAlthoughMinIOIsRemovedInItsMiddle: what is left of it is nobody's.
func TestAMoveEndsAlthoughMinIOIsRemovedInItsMiddle(t *testing.T) {
	for _, at := range both {
		actionstest.InBubble(t, func(w *actionstest.World) {
			s := installed(w)
			s.crowded()
			s.AfterEffect = func(effect string) {
				if effect == at {
					s.Remove(minio.StatefulSetRef(miniosim.Namespace))
				}
			}
			s.moves(0)
			w.RunToEnd(w.Config(s.definitions()))
			if w.LastLine() != "ended done" {
				t.Errorf("after %s: %s", at, w.LastLine())
			}
		})
	}
}

func TestNothingIsDeletedByNameAlone(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		client := s.Client(s.Objects)
		claim := minio.ClaimRef(miniosim.Namespace, "ha-minio-0")
		for _, err := range []error{client.DeletePod(t.Context(), "ha-minio-0", "another"), client.DeleteClaim(t.Context(), "ha-minio-0", "another")} {
			if kube.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("of another UID: %v", err)
			}
		}
		if s.Object(claim)["metadata"].(map[string]any)["deletionTimestamp"] != nil || s.pod(0).State != journal.MinioPodRuns {
			t.Error("it was deleted")
		}
	})
}

func TestADryRunMovesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.crowded()
		w.Request(s.subject, journal.ActionRequested{Kind: journal.ActionMoveMinio, DryRun: true, Input: journal.MinioMove{Pod: s.pod(0)}})
		w.RunToEnd(w.Config(s.definitions()))
		if w.LastLine() != "ended dry-run" || len(s.Effects()) != 0 {
			t.Errorf("%s; %v", w.LastLine(), s.Effects())
		}
	})
}
