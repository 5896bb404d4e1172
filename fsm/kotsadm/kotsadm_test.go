package kotsadm

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

func TestTheDatabaseHasThreeReplicasOnceThreeNodesAreReady(t *testing.T) {
	for _, test := range []struct {
		nodes, replicas int
		expect          string
		want            bool
	}{
		{nodes: 2, replicas: 1, expect: "1"},
		{nodes: 3, replicas: 1, expect: "1", want: true},
		{nodes: 3, replicas: 5, expect: "5", want: true},
		{nodes: 3, replicas: 3, expect: "1", want: true},
		{nodes: 3, replicas: 3, expect: "3"},
		{nodes: 3, replicas: 3},
		{nodes: 3, replicas: 1, want: true},
		{nodes: 2, replicas: 3, expect: "3"}, // never back
		{nodes: 2, replicas: 5, expect: "5"},
		{nodes: 1000, replicas: 1, expect: "1", want: true},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			w := newWorld(t, test.nodes)
			w.observe(rqlite, journal.KotsadmFacts{Generation: 1, Replicas: test.replicas, Expect: test.expect})
			rec := w.wants(rqlite, test.want)
			if want := (journal.KotsadmFacts{Replicas: test.replicas, Expect: test.expect}).Size(); rec != nil && rec.Request.Change.From != want {
				t.Errorf("the change is %+v", rec.Request.Change)
			}
			state, scaled := w.state(rqlite), test.replicas == 3 && test.expect != "1"
			if (state == Scaling) != test.want || (state == HA) != scaled {
				t.Errorf("it is %s", state)
			}
		})
	}
}

func TestANodeThatIsNotReadyDoesNotCount(t *testing.T) {
	w := newWorld(t, 2)
	w.observe(rqlite, single(1))
	w.write(journal.Draft{Type: journal.TypeNodeObserved, Subject: node(7), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
		Role: journal.RoleWorker, Taints: []journal.Taint{{Key: journal.TaintUnreachable}},
	}}})
	w.wants(rqlite, false)
	w.join(7)
	w.wants(rqlite, true)
}

func TestSwitchedOffNothingIsBegunAndWhatHasBegunEnds(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.wants(rqlite, true)
	w.p = w.p.With(Machine, Policy{})
	rec := w.open(rqlite)
	if rec.Cancelling == nil || rec.Cancelling.Reason != "enable_ha_kotsadm is off" {
		t.Errorf("the action is %+v", rec)
	}
	w.end(rec, journal.OutcomeAbandoned)
	w.observe(rqlite, single(2))
	w.wants(rqlite, false)
}

func TestAReinstallIsScaledAgainAndIsNoFight(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.set(w.wants(rqlite, true), 2, journal.OutcomeDone)
	w.wants(rqlite, false) // what was observed is older
	w.now = w.now.Add(10 * time.Minute)
	w.observe(rqlite, single(3)) // installed again
	w.set(w.wants(rqlite, true), 4, journal.OutcomeDone)
	w.now = w.now.Add(10 * time.Minute)
	another := single(5)
	another.Image = "rqlite:8.2"
	w.observe(rqlite, another) // and another version
	w.set(w.wants(rqlite, true), 6, journal.OutcomeDone)
	w.now = w.now.Add(10 * time.Minute)
	anew := rqlite
	anew.UID = "uid-anew" // and after it was removed
	w.write(journal.Draft{Type: journal.TypeThingGone, Subject: rqlite, Payload: journal.ThingGone{Machine: Machine, Reason: "deleted"}})
	w.observe(anew, another)
	w.wants(anew, true)
	if state := w.state(rqlite); state != Removed || Known(w.s)["default/kotsadm-rqlite"].UID != "uid-anew" {
		t.Errorf("the first is %s, known are %+v", state, Known(w.s))
	}
}

func TestSomebodyWhoUndoesItTwiceIsNotFought(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeAbandoned} {
		w := newWorld(t, 3)
		w.observe(rqlite, single(1))
		for generation := int64(2); generation < 6; generation += 2 {
			w.set(w.wants(rqlite, true), generation, outcome)
			w.observe(rqlite, single(generation+1))
			w.now = w.now.Add(time.Minute)
		}
		w.wants(rqlite, false)
		if len(w.s.Refusals) != 1 || w.s.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.s.Refusals[0].Reason, "back to 1 (-bootstrap-expect=1)") {
			t.Errorf("refused is %+v", w.s.Refusals)
		}
		w.now = w.now.Add(time.Hour)
		w.wants(rqlite, true)
	}
}

func TestWhatEndedEarlyIsAskedForAgainWhenSomethingIsNewOrAfterARest(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeCancelled, journal.OutcomeDryRun} {
		w := newWorld(t, 3)
		w.p.DryRun = outcome == journal.OutcomeDryRun
		w.observe(rqlite, single(1))
		w.end(w.wants(rqlite, true), outcome)
		w.wants(rqlite, false)
		if w.p.DryRun {
			w.p.DryRun = false
		} else {
			w.observe(rqlite, single(2))
			w.end(w.wants(rqlite, true), outcome)
			w.now = w.now.Add(rest - time.Second)
			w.wants(rqlite, false)
			w.now = w.now.Add(time.Second)
		}
		w.wants(rqlite, true)
	}
}

func TestWhatSomebodyElseHasSetIsNoLongerNeeded(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.wants(rqlite, true)
	w.observe(rqlite, journal.KotsadmFacts{Generation: 2, Replicas: 3, Expect: "3"})
	if rec := w.open(rqlite); rec == nil || rec.Cancelling == nil || rec.Cancelling.Reason != "it has 3 replicas" {
		t.Errorf("the action is %+v", rec)
	}
}

func TestItCanBePausedByItsName(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	drafts, err := fsm.Pause(w.s, w.now, "default/kotsadm-rqlite", "a test", 0, "cli:root@a")
	if err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	w.wants(rqlite, false)
	if len(w.s.Refusals) != 1 || !strings.Contains(w.s.Refusals[0].Reason, "ekco resume default/kotsadm-rqlite") {
		t.Errorf("refused is %+v", w.s.Refusals)
	}
	if drafts, err = fsm.Resume(w.s, "default/kotsadm-rqlite", "", "cli:root@a"); err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	w.wants(rqlite, true)
	if _, err := fsm.Pause(w.s, w.now, "kotsadm/other", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
		t.Errorf("pausing what is not there: %v", err)
	}
}

func TestASnapshotHoldsWhatIsKnown(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.set(w.wants(rqlite, true), 2, journal.OutcomeDone)
	snapshot, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.s, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
		t.Fatal(err)
	}
	w.wants(rqlite, false)
	w.observe(rqlite, single(3))
	w.wants(rqlite, true)
}

// TestAReinstallThatIsSeenBeforeTheActionEndsIsScaledAgainSoon: the facts that tell of it
// are older than the end.
func TestAReinstallThatIsSeenBeforeTheActionEndsIsScaledAgainSoon(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	rec := w.wants(rqlite, true)
	w.observe(rqlite, single(3))
	w.set(rec, 2, journal.OutcomeAbandoned)
	w.now = w.now.Add(time.Minute)
	w.wants(rqlite, true)
}
