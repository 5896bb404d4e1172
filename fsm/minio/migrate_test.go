package minio

import (
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const migrate = journal.ActionMigrateMinio

// complete is MinIO of which all replicas run, evenly spread, besides the single one.
func complete(generation int64) journal.MinioFacts {
	facts := installed(generation, 6)
	for i := range 6 {
		facts.Pods = append(facts.Pods, journal.MinioPod{
			Name: fmt.Sprintf("ha-minio-%d", i), UID: fmt.Sprintf("uid-%d", i), Node: fmt.Sprintf("n%d", i%3), State: journal.MinioPodRuns,
		})
	}
	return facts
}

func TestTheSingleMinIOIsMigratedOnceAllReplicasRun(t *testing.T) {
	for name, test := range map[string]struct {
		nodes int
		facts func(*journal.MinioFacts)
		want  bool
	}{
		"all run":   {3, func(*journal.MinioFacts) {}, true},
		"two nodes": {2, func(*journal.MinioFacts) {}, false},
		"two nodes that have all of them": {2, func(f *journal.MinioFacts) {
			for i := range f.Pods {
				f.Pods[i].Node = nodeOf(i % 2).Name
			}
		}, false},
		"one waits":                         {3, func(f *journal.MinioFacts) { f.Pods[3].State = journal.MinioPodWaits }, false},
		"one is missing":                    {3, func(f *journal.MinioFacts) { f.Pods = f.Pods[1:] }, false},
		"none are asked for":                {3, func(f *journal.MinioFacts) { f.Replicas, f.Desired, f.Pods = 0, 0, nil }, false},
		"there is no single one":            {3, func(f *journal.MinioFacts) { f.Deployment = "" }, false},
		"only the hand-over is left":        {3, func(f *journal.MinioFacts) { f.Service = journal.MinioServiceHA }, true},
		"an EKCO disabled the Service":      {3, func(f *journal.MinioFacts) { f.Service = journal.MinioServiceDisabled }, false},
		"the installer works on it":         {3, func(f *journal.MinioFacts) { f.Service = journal.MinioServiceInstaller }, false},
		"somebody has it elsewhere":         {3, func(f *journal.MinioFacts) { f.Service = journal.MinioServiceOther }, false},
		"there is no Service":               {3, func(f *journal.MinioFacts) { f.Service = "" }, false},
		"they are spread unevenly, at once": {3, func(f *journal.MinioFacts) { f.Pods[1].Node = "n0" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.nodes)
			facts := complete(1)
			test.facts(&facts)
			w.observe(facts)
			w.wants(migrate, test.want)
		})
	}
}

// TestAMigrationWaitsForReplicasThatWereAskedForOnly: half of them are no reason to copy all data
// to those.
func TestAMigrationWaitsForReplicasThatWereAskedForOnly(t *testing.T) {
	w := newWorld(t, 3)
	facts := complete(1)
	facts.Replicas, facts.Pods = 3, facts.Pods[:3]
	w.observe(facts)
	rec := w.wants(scaling, true)
	w.made(rec, journal.MinioScaled{Generation: 2, Replicas: 6})
	w.end(rec, journal.OutcomeDone)
	w.wants(migrate, false) // what was observed is older
	w.observe(complete(2))
	w.wants(migrate, true)
}

// TestAMigrationDoesNotBeginBesideAnythingElse: what is open may take replicas away yet.
func TestAMigrationDoesNotBeginBesideAnythingElse(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(installed(1, 0))
	rec := w.wants(scaling, true)
	w.made(rec, journal.MinioScaled{Generation: 2, Replicas: 6})
	w.observe(complete(2))
	w.wants(migrate, false)
	w.end(rec, journal.OutcomeDone)
	w.wants(migrate, true)
}

// TestNothingMigratesUnlessThePolicySaysSo: an EKCO that knows how to may still not be meant to.
func TestNothingMigratesUnlessThePolicySaysSo(t *testing.T) {
	w := newWorld(t, 3)
	w.P = w.P.With(Machine, Policy{})
	w.observe(complete(1))
	w.wants(migrate, false)
	w.P = w.P.With(Machine, Policy{Migrates: true})
	w.wants(migrate, true)
}

// TestADryRunOfAMigrationIsNone: nothing is on its way anywhere.
func TestADryRunOfAMigrationIsNone(t *testing.T) {
	w := newWorld(t, 3)
	w.P.DryRun = true
	w.observe(complete(1))
	w.plays("", journal.MinioCutOver{}, journal.StepPrepareMinio)
	if got := w.state(); got != Single {
		t.Errorf("in a dry run it is %s", got)
	}
}

// TestAnAdoptedMigrationIsNotEndedBeforeAnythingIsObserved: that nothing is known of the single
// one does not say that it is gone.
func TestAnAdoptedMigrationIsNotEndedBeforeAnythingIsObserved(t *testing.T) {
	w := newWorld(t, 3)
	w.Write(journal.Draft{Type: journal.TypeActionAdopted, Subject: minio, Action: "migrate-minio-1", Payload: journal.ActionAdopted{
		Record: journal.ActionRecord{ID: "migrate-minio-1", Kind: migrate, Subject: minio},
	}})
	if rec := w.open(migrate); rec == nil || rec.Cancelling != nil {
		t.Errorf("the action is %+v", rec)
	}
}

// TestAMigrationKeepsEverythingElseAway: that its Service leads nowhere is its own doing.
func TestAMigrationKeepsEverythingElseAway(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(complete(1))
	rec := w.wants(migrate, true)
	facts := complete(1)
	facts.Service, facts.Pods[1].Node = journal.MinioServiceDisabled, "n0"
	w.observe(facts)
	w.wants(repair, false)
	w.wants(move, false)
	facts.Replicas, facts.Generation = 5, 2
	w.observe(facts)
	w.wants(scaling, true) // it needs all of them
	w.end(rec, journal.OutcomeCancelled)
	w.wants(repair, true)
}

func TestAMigrationShowsUntilTheSwitch(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(complete(1))
	rec := w.wants(migrate, true)
	if got := w.state(); got != Single {
		t.Errorf("before it begins it is %s", got)
	}
	w.act(rec, &journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepPrepareMinio}}}},
		&journal.StepStarted{Step: journal.StepPrepareMinio, Attempt: 1})
	if got := w.state(); got != Migrating {
		t.Errorf("under way it is %s", got)
	}
	facts := complete(1)
	facts.Service = journal.MinioServiceHA
	w.observe(facts)
	if got := w.state(); got != HA {
		t.Errorf("after the switch it is %s", got)
	}
}

func TestAMigrationThatIsCalledOffLeavesASingleOne(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(complete(1))
	rec := w.wants(migrate, true)
	w.act(rec, &journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepPrepareMinio}}}},
		&journal.StepStarted{Step: journal.StepPrepareMinio, Attempt: 1})
	w.state()
	w.end(rec, journal.OutcomeCancelled)
	w.Decide()
	if got := w.S.Things[fsm.Key(minio)].State; got != Single {
		t.Errorf("it is %s", got)
	}
	w.wants(migrate, false) // nothing has changed since
	w.Pass(fsm.RetryAfter + time.Minute)
	w.wants(migrate, true)
}

func TestAMigrationThatHasNotBegunEndsWithTheSingleMinIO(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(complete(1))
	rec := w.wants(migrate, true)
	facts := complete(1)
	facts.Deployment = ""
	w.observe(facts)
	w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
	if rec.Cancelling == nil || rec.Cancelling.Reason != "there is no Deployment minio any more" {
		t.Errorf("the action is %+v", rec)
	}
}
