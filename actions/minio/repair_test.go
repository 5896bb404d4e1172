package minio

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

// disabled has MinIO's Service disabled by an EKCO that did not come to its end, with six
// replicas and with or without the single MinIO, and asks for what is due then.
func (s *store) disabled(single bool) {
	s.replicas(6)
	s.Reconcile()
	s.Point(`{"doesnotexist":"doesnotexist"}`)
	to := journal.MinioServiceSingle
	if !single {
		s.Remove(minio.DeploymentRef(miniosim.Namespace))
		to = journal.MinioServiceHA
	}
	s.ask(journal.ActionRepairMinio, journal.MinioRepair{To: to})
}

func (s *store) leads() string {
	facts, err := s.Client(s.Objects).Read(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	return string(facts.Service)
}

func TestTheCrashMatrixOfARepair(t *testing.T) {
	actionstest.Scenes{
		"to the highly available one": scene(8, func(s *store) { s.disabled(false) }),
		"to the single one":           scene(8, func(s *store) { s.disabled(true) }),
	}.Run(t)
}

func TestADisabledServiceIsRepaired(t *testing.T) {
	for single, want := range map[bool]string{true: "minio", false: "ha-minio"} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			s := installed(w)
			s.disabled(single)
			w.RunToEnd(w.Config(s.definitions()))
			if w.LastLine() != "ended done" || s.leads() != want || s.looks != 1 {
				t.Errorf("%s; it leads to %s, want %s; looked %d times", w.LastLine(), s.leads(), want, s.looks)
			}
		})
	}
}

func TestTheServiceIsNotPointedToAMinIOThatIsNotHealthy(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.disabled(false)
		for i := range 3 {
			s.Silence(i, true)
		}
		r := w.Start(w.Config(s.definitions()))
		w.Pass(time.Hour)
		if held := w.Record().Holds[journal.StepPointMinio]; held.Preflight != MinioHealthy || !strings.Contains(held.Reason, "MinIO is not healthy") || s.leads() != string(journal.MinioServiceDisabled) {
			t.Errorf("held by %+v; it leads to %s", held, s.leads())
		}
		s.Silence(0, false)
		r.End()
		if w.LastLine() != "ended done" || s.leads() != "ha-minio" {
			t.Errorf("%s; it leads to %s", w.LastLine(), s.leads())
		}
	})
}

// TestTheSingleMinIOGetsItsServiceBackWhateverTheOtherDoes: it has all data.
func TestTheSingleMinIOGetsItsServiceBackWhateverTheOtherDoes(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.disabled(true)
		for i := range 6 {
			s.Silence(i, true)
		}
		w.RunToEnd(w.Config(s.definitions()))
		if w.LastLine() != "ended done" || s.leads() != "minio" || s.Asked(minio.Now) != 0 {
			t.Errorf("%s; it leads to %s", w.LastLine(), s.leads())
		}
	})
}

func TestARepairThatSomebodyElseMadeOrMadeWrongEnds(t *testing.T) {
	for name, test := range map[string]struct {
		single bool
		change func(s *store)
		reason string
	}{
		"pointed elsewhere":       {false, func(s *store) { s.Point(`{"app":"mine"}`) }, "something else"},
		"the Service is gone":     {false, func(s *store) { s.Remove(minio.ServiceRef(miniosim.Namespace)) }, "there is no Service minio"},
		"the single one is gone":  {true, func(s *store) { s.Remove(minio.DeploymentRef(miniosim.Namespace)) }, "there is no Deployment minio any more"},
		"the single one is back":  {false, func(s *store) { s.Put(minio.DeploymentRef(miniosim.Namespace), `{}`) }, "there is a Deployment minio again"},
		"the StatefulSet is gone": {true, func(s *store) { s.Remove(minio.StatefulSetRef(miniosim.Namespace)) }, "StatefulSet ha-minio is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				s := installed(w)
				s.disabled(test.single)
				test.change(s)
				w.RunToEnd(w.Config(s.definitions()))
				if last := s.last(); !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, test.reason) || len(s.Effects()) != 0 {
					t.Errorf("it ends with %s and %v", last, s.Effects())
				}
			})
		})
	}
}

func TestADryRunRepairsNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		s := installed(w)
		s.Point(`{"doesnotexist":"doesnotexist"}`)
		w.Request(s.subject, journal.ActionRequested{Kind: journal.ActionRepairMinio, DryRun: true, Input: journal.MinioRepair{To: journal.MinioServiceSingle}})
		w.RunToEnd(w.Config(s.definitions()))
		if w.LastLine() != "ended dry-run" || len(s.Effects()) != 0 {
			t.Errorf("%s; %v", w.LastLine(), s.Effects())
		}
	})
}

func TestAServiceCannotBeMadeToLeadAnywhereElse(t *testing.T) {
	for _, to := range []journal.MinioService{"", journal.MinioServiceInstaller, journal.MinioServiceOther} {
		if plan, err := planRepair(t.Context(), journal.ActionRecord{}, journal.MinioRepair{To: to}); err == nil {
			t.Errorf("to %q: %+v", to, plan)
		}
	}
}

// TestARepairWaitsWhileAnotherEKCOIsAtWork: that one may have disabled the Service for a switch.
func TestARepairWaitsWhileAnotherEKCOIsAtWork(t *testing.T) {
	if !repairDefinition(nil, nil).Exclusive {
		t.Error("it does not wait until its own actions are mirrored")
	}
}

// TestARepairLeadsToWhatHasTakenTheSingleMinIOsPlace: a Deployment of which that is not known has
// all data.
func TestARepairLeadsToWhatHasTakenTheSingleMinIOsPlace(t *testing.T) {
	for same, want := range map[bool]string{true: "ha-minio", false: "nowhere"} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			taken := "another"
			if same {
				taken = b.deployment()
			}
			b.Point(nowhere)
			b.Request(b.subject, journal.ActionRequested{Kind: journal.ActionRepairMinio, Input: journal.MinioRepair{To: journal.MinioServiceHA, Taken: taken}})
			b.start().End()
			if leads := b.ServiceLeads(); (leads == "ha-minio") != same {
				t.Errorf("it leads to %q, want %s", leads, want)
			}
		})
	}
}
