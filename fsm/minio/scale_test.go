package minio

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

const scaling = journal.ActionScaleMinio

func TestMinIOHasTheReplicasThatAreDesiredOnceThreeNodesAreReady(t *testing.T) {
	for _, test := range []struct {
		nodes, replicas, desired int
		want                     bool
	}{
		{2, 0, 6, false},
		{3, 0, 6, true},
		{3, 4, 6, true}, // somebody lowered it
		{3, 7, 6, true},
		{3, 6, 6, false},
		{2, 4, 6, false},
		{3, 0, 0, false},
		{3, 3, 0, false},
		{1000, 0, 4, true},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := newWorld(t, test.nodes)
			facts := installed(1, test.replicas)
			facts.Desired = test.desired
			w.observe(facts)
			rec := w.wants(scaling, test.want)
			if rec == nil {
				return
			}
			if asked, err := journal.InputOf[journal.MinioScale](rec.Request); err != nil || asked.Replicas != test.desired {
				t.Errorf("%v: asked for %+v", err, asked)
			}
		})
	}
}

func TestANodeThatIsNotReadyDoesNotCount(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(installed(1, 0))
	w.lose(7)
	w.wants(scaling, false)
	w.join(7)
	w.wants(scaling, true)
}

func TestTheStateIsWhereTheServiceLeads(t *testing.T) {
	w := newWorld(t, 1)
	for _, step := range []struct {
		service journal.MinioService
		want    journal.State
	}{
		{journal.MinioServiceSingle, Single},
		{journal.MinioServiceHA, HA},
		{journal.MinioServiceDisabled, Single},
		{journal.MinioServiceHA, HA},
		{"", Single},
		{journal.MinioServiceOther, Single},
	} {
		facts := installed(1, 0)
		facts.Service = step.service
		w.observe(facts)
		if got := w.state(); got != step.want {
			t.Errorf("with Service %q it is %s, want %s", step.service, got, step.want)
		}
	}
	w.Write(journal.Draft{Type: journal.TypeThingGone, Subject: minio, Payload: journal.ThingGone{Machine: Machine, Reason: "deleted"}})
	if got := w.state(); got != Absent || len(Known(w.S)) != 0 {
		t.Errorf("gone it is %s, known are %v", got, Known(w.S))
	}
	w.observe(installed(1, 0))
	if got := w.state(); got != Single || Known(w.S)["minio/ha-minio"].UID != minio.UID {
		t.Errorf("back it is %s, known are %v", got, Known(w.S))
	}
}

func TestWhileTheInstallerWorksOnMinIONothingIsBegun(t *testing.T) {
	w := newWorld(t, 3)
	facts := installed(1, 0)
	facts.Service = journal.MinioServiceInstaller
	w.observe(facts)
	w.wants(scaling, false)
	w.observe(installed(1, 0))
	rec := w.wants(scaling, true)
	w.observe(facts)
	if w.open(scaling); rec.Cancelling == nil || !strings.Contains(rec.Cancelling.Reason, "the installer works on MinIO") {
		t.Errorf("the action is %+v", rec)
	}
}

func TestSwitchedOffNothingIsBegunAndWhatHasBegunEnds(t *testing.T) {
	for _, policy := range []any{Policy{Off: "enable_ha_minio is off"}, nil} {
		w := newWorld(t, 3)
		w.observe(installed(1, 0))
		rec := w.wants(scaling, true)
		w.P = w.P.With(Machine, policy)
		if w.open(scaling); rec.Cancelling == nil || (policy != nil && rec.Cancelling.Reason != "enable_ha_minio is off") {
			t.Errorf("the action is %+v", rec)
		}
		w.end(rec, journal.OutcomeAbandoned)
		w.observe(installed(2, 0))
		w.wants(scaling, false)
	}
}

func TestWhatWasScaledNeedNotBeSeenFirst(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(installed(1, 0))
	rec := w.wants(scaling, true)
	w.made(rec, journal.MinioScaled{Generation: 2, Replicas: 6})
	w.end(rec, journal.OutcomeDone)
	w.wants(scaling, false) // what was observed is older
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	w.wants(scaling, false)
	w.observe(installed(3, 0))
	w.wants(scaling, true)
}

func TestSomebodyWhoLowersTheReplicasTwiceIsNotFought(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeAbandoned} {
		w := newWorld(t, 3)
		w.observe(installed(1, 0))
		for generation := int64(2); generation < 6; generation += 2 {
			rec := w.wants(scaling, true)
			w.made(rec, journal.MinioScaled{Generation: generation, Replicas: 6})
			w.end(rec, outcome)
			w.observe(installed(generation+1, 0))
			w.Pass(time.Minute)
		}
		w.wants(scaling, false)
		if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested ||
			!strings.Contains(w.S.Refusals[0].Reason, "another program keeps changing the replicas of StatefulSet minio/ha-minio back to 0") {
			t.Errorf("refused is %+v", w.S.Refusals)
		}
		w.Pass(time.Hour)
		w.wants(scaling, true)
	}
}

func TestWhatEndedEarlyIsAskedForAgainWhenSomethingIsNewOrAfterARest(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(installed(1, 0))
	w.end(w.wants(scaling, true), journal.OutcomeCancelled)
	w.wants(scaling, false)
	w.observe(installed(2, 0))
	w.end(w.wants(scaling, true), journal.OutcomeCancelled)
	w.Pass(fsm.RetryAfter - time.Second)
	w.wants(scaling, false)
	w.Pass(time.Second)
	w.wants(scaling, true)
}

func TestADryRunIsNotRepeated(t *testing.T) {
	w := newWorld(t, 3)
	w.P.DryRun = true
	w.observe(installed(1, 0))
	w.end(w.wants(scaling, true), journal.OutcomeDryRun)
	w.Pass(24 * time.Hour)
	w.wants(scaling, false)
	w.P.DryRun = false
	w.wants(scaling, true)
}

func TestAScalingThatHasLostItsReasonEnds(t *testing.T) {
	for reason, facts := range map[string]journal.MinioFacts{
		"it has 6 replicas":             installed(2, 6),
		"its annotation asks for 4 now": {Generation: 2, Desired: 4},
	} {
		w := newWorld(t, 3)
		w.observe(installed(1, 0))
		rec := w.wants(scaling, true)
		w.observe(facts)
		w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
		if rec.Cancelling == nil || rec.Cancelling.Reason != reason {
			t.Errorf("the action is %+v, want %q", rec, reason)
		}
	}
}

func TestMinIOCanBePausedByItsName(t *testing.T) {
	for _, name := range []string{"minio/ha-minio", "minio/minio/ha-minio"} {
		w := newWorld(t, 3)
		w.observe(installed(1, 0))
		drafts, err := fsm.Pause(w.S, w.Now, name, "a test", 0, "cli:root@a")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(drafts...)
		w.wants(scaling, false)
		if drafts, err = fsm.Resume(w.S, name, "", "cli:root@a"); err != nil {
			t.Fatal(err)
		}
		w.Write(drafts...)
		w.wants(scaling, true)
		if _, err := fsm.Pause(w.S, w.Now, "minio/other", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
			t.Errorf("pausing what is not there: %v", err)
		}
	}
}

// TestTheMinIOThatIsPausedIsTheOneThatIsThere: one of that name was removed and installed again.
func TestTheMinIOThatIsPausedIsTheOneThatIsThere(t *testing.T) {
	for range 20 { // in whatever order they are looked through
		w := newWorld(t, 3)
		w.observe(installed(1, 0))
		w.Write(journal.Draft{Type: journal.TypeThingGone, Subject: minio, Payload: journal.ThingGone{Machine: Machine, Reason: "deleted"}})
		again := journal.MinioSubject("minio", "uid-again")
		w.Observe(Machine, again, installed(1, 0))
		if got := (machine{}).Meant(w.S, "minio/ha-minio"); got == nil || got.UID != again.UID {
			t.Fatalf("meant is %+v, want the one of UID %s", got, again.UID)
		}
	}
}

func TestAnAdoptedActionHasItsThingBeforeAnythingIsObserved(t *testing.T) {
	w := newWorld(t, 3)
	w.Write(journal.Draft{Type: journal.TypeActionAdopted, Subject: minio, Action: "scale-minio-1", Payload: journal.ActionAdopted{
		Record: journal.ActionRecord{ID: "scale-minio-1", Kind: scaling, Subject: minio},
	}})
	if got := w.state(); got != Single {
		t.Errorf("it is %s", got)
	}
	w.observe(installed(1, 0))
	w.wants(scaling, true)
}

func TestTheHistorySaysWhatTheReplicasDoByNode(t *testing.T) {
	pods := []journal.MinioPod{
		{Name: "ha-minio-0", Node: "a", State: journal.MinioPodRuns},
		{Name: "ha-minio-1", Node: "b", State: journal.MinioPodEnds},
		{Name: "ha-minio-2", Node: "a", State: journal.MinioPodRuns},
		{Name: "ha-minio-3", State: journal.MinioPodLacksVolume},
	}
	if got, want := placesText(pods), "replicas: 0, 2 on a; 1 (ends) on b; 3 (lacks its volume) on no node"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
