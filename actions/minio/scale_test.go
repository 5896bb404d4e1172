package minio

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

var six = journal.MinioScale{Replicas: 6}

func (s *store) scales() { s.ask(journal.ActionScaleMinio, six) }

// scene is one of the crash matrix.
func scene(points int, prepare func(s *store)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(w *actionstest.World) actionstest.Stage {
		s := installed(w)
		prepare(s)
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(s.definitions()...) },
			Outcome: s.outcome,
		}
	}}
}

func TestTheCrashMatrixOfScaling(t *testing.T) {
	actionstest.Scenes{
		"from none": scene(12, func(s *store) { s.scales() }),
		"from more": scene(12, func(s *store) { s.replicas(8); s.scales() }),
		"healthy late": scene(12, func(s *store) {
			for i := range 3 {
				s.Silence(i, true)
			}
			time.AfterFunc(time.Minute, func() { s.Silence(0, false) })
			s.scales()
		}),
		"against another who was faster": scene(12, func(s *store) {
			first := true
			s.BeforeEffect = func(string) {
				if first {
					first = false
					s.replicas(2)
				}
			}
			s.scales()
		}),
	}.Run(t)
}

func TestReplicasThatDoNotGetReadyHoldTheScalingWithTheirPodsReasons(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.AfterEffect = nil
		s.scales()
		r := w.Start(w.Config(s.definitions()))
		w.Pass(30 * time.Second)
		if occupied := w.Occupied(); len(occupied) != 0 || len(w.Record().Holds) != 0 {
			t.Errorf("while it waits it occupies %v and is held by %v", occupied, w.Record().Holds)
		}
		for i := range 5 {
			s.Run(i, miniosim.Pod{Node: "a"})
		}
		s.Run(5, miniosim.Pod{Message: "0/3 nodes are available"})
		s.Reconcile()
		w.Pass(5 * time.Minute)
		held := w.Record().Holds[journal.StepAwaitMinio]
		if held.Preflight != MinioReady || held.Reason != "5 of 6 replicas are ready; ha-minio-5: Pending: Unschedulable: 0/3 nodes are available" {
			t.Errorf("held by %+v", held)
		}
		events := len(w.Events())
		w.Pass(10 * time.Hour)
		if n := len(w.Events()) - events; n > 0 {
			t.Errorf("%d events while nothing changes", n)
		}
		s.Run(5, miniosim.Pod{Node: "b"})
		s.Reconcile()
		r.End()
		if s.looks != 1 {
			t.Errorf("looked %d times", s.looks)
		}
		s.tells("done scale", "held", "done "+journal.StepAwaitMinio, "ended done")
	})
}

func TestNoReplicaIsTakenAwayWhoseDataIsNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, shall int
		service         string
		single, scales  bool
	}{
		"more":                    {4, 6, toHA, false, true},
		"below the quorum":        {6, 3, toHA, false, false},
		"one of six that serve":   {6, 1, toHA, true, false},
		"no single MinIO":         {6, 5, toHA, false, false},
		"the single MinIO is old": {6, 5, toHA, true, false},
		"below, data elsewhere":   {6, 1, toSingle, true, false},
		"data elsewhere":          {6, 4, toSingle, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.replicas(test.replicas)
				s.Reconcile()
				s.Point(test.service)
				if !test.single {
					s.Remove(minio.DeploymentRef(miniosim.Namespace))
				}
				s.ask(journal.ActionScaleMinio, journal.MinioScale{Replicas: test.shall})
				r := w.Start(w.Config(s.definitions()))
				w.Pass(time.Hour)
				if test.scales {
					r.End()
					s.tells("ended done")
					return
				}
				if held := w.Record().Holds[journal.StepScaleMinio]; held.Preflight != MinioDataElsewhere || len(s.Effects()) != 0 {
					t.Errorf("held by %+v after %q", held, s.took())
				}
			})
		})
	}
}

// TestReadyReplicasAreNotEnough: MinIO must be healthy as well.
func TestReadyReplicasAreNotEnough(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		for i := range 3 {
			s.Silence(i, true)
		}
		s.scales()
		r := w.Start(w.Config(s.definitions()))
		w.Pass(10 * time.Minute)
		if held := w.Record().Holds[journal.StepAwaitMinio]; !strings.Contains(held.Reason, "MinIO is not healthy: ") ||
			!strings.Contains(held.Reason, "ha-minio-3: fewer drives work than the 4 that a write needs (HTTP status 503)") {
			t.Errorf("held by %+v", held)
		}
		s.Silence(0, false)
		r.End()
		s.tells("ended done")
	})
}

func TestAScalingWhoseStatefulSetIsChangedMeanwhileEnds(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *store)
		reason string
		looks  int
	}{
		"reset":         {func(s *store) { s.replicas(1) }, "set its replicas to 1", 2},
		"removed":       {func(s *store) { s.Remove(minio.StatefulSetRef(miniosim.Namespace)) }, "StatefulSet ha-minio is gone", 1},
		"no annotation": {func(s *store) { s.annotate(nil) }, "StatefulSet ha-minio is gone", 1},
		"replaced": {func(s *store) {
			ref := minio.StatefulSetRef(miniosim.Namespace)
			s.Remove(ref)
			s.Put(ref, `{"metadata":{"annotations":{"kurl.sh/desired-scale":"6"}},"spec":{"replicas":0}}`)
		}, "the StatefulSet was replaced", 1},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.AfterEffect = nil
				s.scales()
				r := w.Start(w.Config(s.definitions()))
				w.Pass(5 * time.Minute)
				test.change(s)
				r.End()
				if last := s.last(); !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, test.reason) {
					t.Errorf("it ends with %s", last)
				}
				if s.looks != test.looks {
					t.Errorf("looked %d times", s.looks)
				}
			})
		})
	}
}

func (s *store) annotate(annotations map[string]any) {
	s.Edit(minio.StatefulSetRef(miniosim.Namespace), func(object map[string]any) { object["metadata"].(map[string]any)["annotations"] = annotations })
}

func TestWhileTheInstallerWorksOnMinIOAnActionWaits(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.Point(`{"app":"does-not-exist"}`)
		s.scales()
		r := w.Start(w.Config(s.definitions()))
		w.Pass(10 * time.Minute)
		if held := w.Record().Holds[journal.StepScaleMinio]; held.Preflight != MinioStillThere || !strings.Contains(held.Reason, "the installer works on MinIO") {
			t.Errorf("held by %+v", held)
		}
		if len(s.Effects()) != 0 {
			t.Errorf("changed: %v", s.Effects())
		}
		s.Point(`{"app":"minio"}`)
		r.End()
		s.tells("held", "done scale", "ended done")
	})
}

func TestADryRunScalesNothingAndWaitsForNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		w.Request(s.subject, journal.ActionRequested{Kind: journal.ActionScaleMinio, DryRun: true, Input: six})
		w.RunToEnd(w.Config(s.definitions()))
		if w.LastLine() != "ended dry-run" || len(s.Effects()) != 0 {
			t.Errorf("%s; %v", w.LastLine(), s.Effects())
		}
	})
}

func TestOnlyTheChangeOfAScalingTakesTheStorage(t *testing.T) {
	plan, err := planScale(t.Context(), journal.ActionRecord{}, six)
	if err != nil {
		t.Fatal(err)
	}
	if change, await := plan.Steps[0].Domains, plan.Steps[1].Domains; len(change) != 1 || change[0] != journal.DomainStorage || await == nil || len(await) != 0 {
		t.Errorf("the change takes %v, the wait %v", change, await)
	}
	if _, err := planScale(t.Context(), journal.ActionRecord{}, journal.MinioScale{}); err == nil {
		t.Error("no replicas can be asked for")
	}
}
