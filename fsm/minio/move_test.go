package minio

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

const move = journal.ActionMoveMinio

// spread has six replicas, one for each of the names of nodes; "-" is one that lacks its
// volume, and "!" before a name that it ends.
func spread(places ...string) journal.MinioFacts {
	facts := installed(1, len(places))
	facts.Desired = len(places)
	for i, place := range places {
		pod := journal.MinioPod{Name: fmt.Sprintf("ha-minio-%d", i), UID: fmt.Sprintf("uid-%d-%s", i, place), Node: place, State: journal.MinioPodRuns}
		switch {
		case place == "-":
			pod.Node, pod.State = "", journal.MinioPodLacksVolume
		case strings.HasPrefix(place, "!"):
			pod.Node, pod.State = place[1:], journal.MinioPodEnds
		}
		facts.Pods = append(facts.Pods, pod)
	}
	return facts
}

// moves expects the move of that replica, "" for none.
func (w *world) moves(want string) *journal.ActionRecord {
	w.T.Helper()
	rec := w.wants(move, want != "")
	if rec != nil && movedPod(rec).Name != want {
		w.T.Errorf("%s is moved, want %s: %s", movedPod(rec).Name, want, rec.Request.Reason)
	}
	return rec
}

func TestAReplicaIsMovedWhileTheyAreNotSpreadEvenly(t *testing.T) {
	for _, test := range []struct {
		nodes int
		facts journal.MinioFacts
		want  string
	}{
		{3, spread("n0", "n0", "n1", "n1", "n2", "n2"), ""},
		{3, spread("n1", "n0", "n1", "n0", "n1", "n0"), "ha-minio-1"},
		{2, spread("n0", "n0", "n0", "n0", "n1", "n1"), "ha-minio-0"}, // also with fewer than three nodes
		{3, spread("n0", "n0", "n0", "n1", "n1", "!n2"), ""},          // not all run
		{3, spread("n0", "n0", "n0", "n0"), ""},                       // four: none can be spared
		{0, spread("n0", "n0", "n0", "n0", "n1", "n1"), ""},
		{3, spread("n0", "n0", "n0", "n0", "n1", "n1", "n2", "n2"), "ha-minio-0"},
		{3, spread("n0", "n0", "n0", "n0", "n1", "n1", "n2", "!n2"), ""}, // also where another could be spared
	} {
		w := newWorld(t, test.nodes)
		w.observe(test.facts)
		w.moves(test.want)
	}
	for name, change := range map[string]func(*journal.MinioFacts){
		"one is missing":     func(f *journal.MinioFacts) { f.Pods = f.Pods[:5] },
		"another is desired": func(f *journal.MinioFacts) { f.Desired = 8 },
		"fewer are desired":  func(f *journal.MinioFacts) { f.Desired = 5 },
		"the installer":      func(f *journal.MinioFacts) { f.Service = journal.MinioServiceInstaller },
	} {
		w := newWorld(t, 2)
		facts := spread("n0", "n0", "n0", "n0", "n1", "n1")
		change(&facts)
		w.observe(facts)
		if rec := w.open(move); rec != nil {
			t.Errorf("%s: %s", name, rec.Request.Reason)
		}
	}
}

func TestNothingIsMovedForAnEvenSpreadWhileANodeWithReplicasIsLost(t *testing.T) {
	w := newWorld(t, 5)
	w.lose(0)
	w.observe(spread("n0", "n1", "n1", "n1", "n2", "n3"))
	w.moves("")
	w.join(0)
	w.moves("ha-minio-1")
}

func TestAReplicaThatLacksItsVolumeForFiveMinutesGetsAnother(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	w.moves("")
	w.Pass(3 * time.Minute)
	facts := spread("n0", "n0", "n1", "n1", "-", "-")
	facts.Generation = 2 // something else is seen meanwhile
	w.observe(facts)
	if next := fsm.Decide(w.S, w.P, w.Now).Next; !next.Equal(w.Now.Add(2 * time.Minute)) {
		t.Errorf("EKCO decides again in %s", next.Sub(w.Now))
	}
	w.Pass(2*time.Minute - time.Second)
	w.moves("")
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Second)
	rec := w.moves("ha-minio-5")
	if !strings.Contains(rec.Request.Reason, "has waited 5m to start") {
		t.Errorf("asked because %s", rec.Request.Reason)
	}
	w.Pass(time.Hour)
	w.moves("ha-minio-5") // one at a time
	w.made(rec, nil)
	w.end(rec, journal.OutcomeDone)
	w.observe(spread("n0", "n0", "n1", "n1", "-", "n2"))
	w.moves("ha-minio-4")
}

// TestAReplicaThatWaitsForSomethingElseKeepsItsVolume: its data is there.
func TestAReplicaThatWaitsForSomethingElseKeepsItsVolume(t *testing.T) {
	for _, state := range []journal.MinioPodState{journal.MinioPodWaits, journal.MinioPodEnds, journal.MinioPodEnded} {
		w := newWorld(t, 3)
		facts := spread("n0", "n0", "n1", "n1", "n2", "-")
		facts.Pods[5].State = state
		w.observe(facts)
		w.Pass(24 * time.Hour)
		w.moves("")
	}
}

// TestWithNoReadyNodeNoReplicaGetsAnotherVolume: no node has room for it, and the one with its
// volume may come back.
func TestWithNoReadyNodeNoReplicaGetsAnotherVolume(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	for i := range 3 {
		w.lose(i)
	}
	w.Pass(time.Hour)
	w.moves("")
	w.join(0)
	w.moves("ha-minio-5")
}

// TestReplicasAreMovedOneAtATime: also where another one needs a place more.
func TestReplicasAreMovedOneAtATime(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n0", "n1", "n1", "n2"))
	rec := w.moves("ha-minio-0")
	w.act(rec, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepDeleteMinioPod}}}},
		journal.StepStarted{Step: journal.StepDeleteMinioPod, Attempt: 1})
	w.observe(spread("n0", "n0", "n0", "n1", "n1", "-"))
	w.Pass(time.Hour)
	w.moves("ha-minio-0")
}

// TestAMoveThatCameToNothingIsNotAskedForAtOnce again and again.
func TestAMoveThatCameToNothingIsNotAskedForAtOnce(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n0", "n1", "n1", "n2"))
	w.end(w.moves("ha-minio-0"), journal.OutcomeAbandoned)
	w.moves("")
	w.Pass(fsm.RetryAfter)
	w.moves("ha-minio-0")
}

func TestTheTimeWithoutAVolumeCountsAnewForAnotherPodAndAfterItHadOne(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	w.Pass(4 * time.Minute)
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "n2"))
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	w.Pass(4 * time.Minute)
	w.moves("")
	w.Pass(time.Minute)
	w.moves("ha-minio-5")
}

// TestWhatTheTimeWithoutAVolumeCountsFromStaysInTheJournal: a replay without a snapshot
// comes to the same time.
func TestWhatTheTimeWithoutAVolumeCountsFromStaysInTheJournal(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	seen := w.S.Seq
	facts := spread("n0", "n0", "n1", "n1", "n2", "-")
	facts.Generation = 2
	w.observe(facts)
	if needs := w.S.Needs(); !needs.Events[seen] || needs.ClockFrom > seen {
		t.Errorf("event %d may leave the journal: %+v", seen, needs)
	}
	before := of(w.S.Things[fsm.Key(minio)]).Lacking[0].Since
	machine{}.VisitAges(w.S.Things[fsm.Key(minio)], func(at *time.Time) { *at = at.Add(time.Hour) })
	if got := of(w.S.Things[fsm.Key(minio)]).Lacking[0].Since; !got.Equal(before.Add(time.Hour)) {
		t.Errorf("when the clock is set it counts from %s", got)
	}
}

func TestAReplicaWhoseNodeIsNoMoreGetsAnotherPlaceAtOnce(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "!n2", "n2"))
	w.moves("") // it ends, and its node is there
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf(2), Payload: journal.NodeGone{Reason: "deleted"}})
	if rec := w.moves("ha-minio-4"); !strings.Contains(rec.Request.Reason, "node n2 of replica ha-minio-4 is gone") {
		t.Errorf("asked because %s", rec.Request.Reason)
	}
}

// TestAReplicaWhoseNodeIsAwayWaitsForIt: a node that is restarted has its data yet.
func TestAReplicaWhoseNodeIsAwayWaitsForIt(t *testing.T) {
	w := newWorld(t, 3)
	w.lose(2)
	w.observe(spread("n0", "n0", "n1", "n1", "!n2", "n2"))
	w.Pass(24 * time.Hour)
	w.moves("")
}

// TestAReplicaThatRunsIsLeftAloneWhereItsNodeIsGone: somebody deleted the node by mistake, and it
// is back once its kubelet is restarted. Until then nothing is copied to it either.
func TestAReplicaThatRunsIsLeftAloneWhereItsNodeIsGone(t *testing.T) {
	w := newWorld(t, 4)
	w.Write(journal.Draft{Type: journal.TypeNodeGone, Subject: nodeOf(2), Payload: journal.NodeGone{Reason: "deleted"}})
	w.observe(complete(1))
	w.moves("")
	w.wants(migrate, false)
}

func TestAMoveThatStalledKeepsNoOtherFromBeginning(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(spread("n0", "n0", "n1", "n1", "-", "-"))
	w.Pass(volumeWait(nil))
	rec := w.moves("ha-minio-4")
	w.act(rec,
		journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepDeleteMinioPod}}}},
		journal.StepStarted{Step: journal.StepDeleteMinioPod, Attempt: 1}, journal.StepFailed{Step: journal.StepDeleteMinioPod, Attempt: 1, Error: "forbidden"},
		journal.ActionStalled{Step: journal.StepDeleteMinioPod, Reason: "forbidden"})
	w.moves("") // not the same one again
	w.observe(spread("n0", "n0", "n1", "n1", "n2", "-"))
	w.moves("ha-minio-5")
}

func TestAMoveThatHasLostItsReasonEnds(t *testing.T) {
	uneven := spread("n0", "n0", "n0", "n1", "n1", "n2")
	for name, test := range map[string]struct {
		now    journal.MinioFacts
		reason string
	}{
		"another pod":    {spread("n1", "n0", "n0", "n1", "n1", "n2"), "replica ha-minio-0 is another pod now"},
		"another missed": {spread("n0", "n0", "n0", "n1", "n1", "!n2"), "not all replicas run any more"},
		"another lacks":  {spread("n0", "n0", "n0", "n1", "n1", "-"), "not all replicas run any more"},
	} {
		w := newWorld(t, 3)
		w.observe(uneven)
		rec := w.moves("ha-minio-0")
		w.observe(test.now)
		w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
		if rec.Cancelling == nil || rec.Cancelling.Reason != test.reason {
			t.Errorf("%s: the action is %+v", name, rec)
		}
	}
}

// TestAMoveOfAReplicaThatHasItsVolumeAgainEnds: what it would take away is its data.
func TestAMoveOfAReplicaThatHasItsVolumeAgainEnds(t *testing.T) {
	w := newWorld(t, 3)
	facts := spread("n0", "n0", "n1", "n1", "n2", "-")
	w.observe(facts)
	w.Pass(time.Hour)
	rec := w.moves("ha-minio-5")
	w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
	if rec.Cancelling != nil {
		t.Errorf("it ends although it lacks its volume: %+v", rec.Cancelling)
	}
	facts.Generation = 2
	facts.Pods[5].State = journal.MinioPodWaits
	w.observe(facts)
	w.Write(fsm.Decide(w.S, w.P, w.Now).Events...)
	if rec.Cancelling == nil || rec.Cancelling.Reason != "replica ha-minio-5 waits now" {
		t.Errorf("the action is %+v", rec)
	}
}

func TestAReplicaThatComesBackToItsNodeEachTimeIsNotMovedForEver(t *testing.T) {
	w := newWorld(t, 3)
	for i := range int64(2) {
		facts := spread("n0", "n0", "n0", "n1", "n1", "n2")
		facts.Generation, facts.Pods[0].UID = i, fmt.Sprintf("uid-again-%d", i)
		w.observe(facts)
		rec := w.moves("ha-minio-0")
		w.made(rec, nil)
		w.end(rec, journal.OutcomeDone)
		w.Pass(time.Minute)
	}
	facts := spread("n0", "n0", "n0", "n1", "n1", "n2")
	facts.Generation = 7
	w.observe(facts)
	w.moves("")
	if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.S.Refusals[0].Reason, "the place of ha-minio-0") {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
}

func TestADryRunOfAMoveOrARepairIsNotRepeated(t *testing.T) {
	w := newWorld(t, 3)
	w.P.DryRun = true
	facts := spread("n0", "n0", "n0", "n1", "n1", "n2")
	facts.Service = journal.MinioServiceDisabled
	w.observe(facts)
	for _, rec := range []*journal.ActionRecord{w.wants(repair, true), w.moves("ha-minio-0")} {
		w.made(rec, nil) // as a dry run says of its steps
		w.end(rec, journal.OutcomeDryRun)
	}
	w.Pass(24 * time.Hour)
	w.moves("")
	w.wants(repair, false)
}

// TestAfterTheSwitchAReplicaWithoutAVolumeIsMoved: the migration waits for it before it deletes the
// single MinIO.
func TestAfterTheSwitchAReplicaWithoutAVolumeIsMoved(t *testing.T) {
	for service, moves := range map[journal.MinioService]string{journal.MinioServiceSingle: "", journal.MinioServiceHA: "ha-minio-5"} {
		w := newWorld(t, 3)
		w.observe(complete(1))
		w.wants(migrate, true)
		facts := spread("n0", "n0", "n1", "n1", "n2", "-")
		facts.Service, facts.Deployment = service, "uid-single"
		w.observe(facts)
		w.moves("")
		w.Pass(5 * time.Minute)
		w.moves(moves)
	}
}
