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
			if want := (journal.KotsadmFacts{Replicas: 3, Expect: strings.Repeat("3", len(test.expect))}).Size(); rec != nil && rec.Request.Change.To != want {
				t.Errorf("the change is to %s, want %s", rec.Request.Change.To, want)
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
	w.Write(journal.Draft{Type: journal.TypeNodeObserved, Subject: node(7), Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{
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
	w.P = w.P.With(Machine, Policy{})
	rec := w.open(rqlite)
	if rec.Cancelling == nil || rec.Cancelling.Reason != "enable_ha_kotsadm is off" {
		t.Errorf("the action is %+v", rec)
	}
	w.End(rec, journal.OutcomeAbandoned)
	w.observe(rqlite, single(2))
	w.wants(rqlite, false)
}

func TestAReinstallIsScaledAgainAndIsNoFight(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.set(w.wants(rqlite, true), 2, journal.OutcomeDone)
	w.wants(rqlite, false) // what was observed is older
	w.Pass(10 * time.Minute)
	w.observe(rqlite, single(3)) // installed again
	w.set(w.wants(rqlite, true), 4, journal.OutcomeDone)
	w.Pass(10 * time.Minute)
	another := single(5)
	another.Image = "rqlite:8.2"
	w.observe(rqlite, another) // and another version
	w.set(w.wants(rqlite, true), 6, journal.OutcomeDone)
	w.Pass(10 * time.Minute)
	anew := rqlite
	anew.UID = "uid-anew" // and after it was removed
	w.Gone(Machine, rqlite, "deleted")
	w.observe(anew, another)
	w.wants(anew, true)
	if state := w.state(rqlite); state != Removed || fsm.KnownObjects[journal.KotsadmFacts](w.S, Machine)["default/kotsadm-rqlite"].UID != "uid-anew" {
		t.Errorf("the first is %s, known are %+v", state, fsm.KnownObjects[journal.KotsadmFacts](w.S, Machine))
	}
}

func TestSomebodyWhoUndoesItTwiceIsNotFought(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeAbandoned} {
		w := newWorld(t, 3)
		w.observe(rqlite, single(1))
		for generation := int64(2); generation < 6; generation += 2 {
			w.set(w.wants(rqlite, true), generation, outcome)
			w.observe(rqlite, single(generation+1))
			w.Pass(time.Minute)
		}
		w.wants(rqlite, false)
		if len(w.S.Refusals) != 1 || w.S.Refusals[0].Rule != fsm.RuleContested || !strings.Contains(w.S.Refusals[0].Reason, "back to 1 (-bootstrap-expect=1)") {
			t.Errorf("refused is %+v", w.S.Refusals)
		}
		w.Pass(time.Hour)
		w.wants(rqlite, true)
	}
}

func TestWhatEndedEarlyIsAskedForAgainWhenSomethingIsNewOrAfterARest(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeCancelled, journal.OutcomeDryRun} {
		w := newWorld(t, 3)
		w.P.DryRun = outcome == journal.OutcomeDryRun
		w.observe(rqlite, single(1))
		w.End(w.wants(rqlite, true), outcome)
		w.wants(rqlite, false)
		if w.P.DryRun {
			w.P.DryRun = false
		} else {
			w.observe(rqlite, single(2))
			w.End(w.wants(rqlite, true), outcome)
			w.Pass(fsm.RetryAfter - time.Second)
			w.wants(rqlite, false)
			w.Pass(time.Second)
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
	drafts, err := fsm.Pause(w.S, w.Now, "default/kotsadm-rqlite", "a test", 0, "cli:root@a")
	if err != nil {
		t.Fatal(err)
	}
	w.Write(drafts...)
	w.wants(rqlite, false)
	if len(w.S.Refusals) != 1 || !strings.Contains(w.S.Refusals[0].Reason, "ekco resume default/kotsadm-rqlite") {
		t.Errorf("refused is %+v", w.S.Refusals)
	}
	if drafts, err = fsm.Resume(w.S, "default/kotsadm-rqlite", "", "cli:root@a"); err != nil {
		t.Fatal(err)
	}
	w.Write(drafts...)
	w.wants(rqlite, true)
	if _, err := fsm.Pause(w.S, w.Now, "kotsadm/other", "", 0, "cli:root@a"); !errors.Is(err, fsm.ErrUnknown) {
		t.Errorf("pausing what is not there: %v", err)
	}
}

func TestASnapshotHoldsWhatIsKnown(t *testing.T) {
	w := newWorld(t, 3)
	w.observe(rqlite, single(1))
	w.set(w.wants(rqlite, true), 2, journal.OutcomeDone)
	snapshot, err := w.S.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.S, err = fsm.LoadState(snapshot, fsmnode.Capability(), Capability()); err != nil {
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
	w.Pass(time.Minute)
	w.wants(rqlite, true)
}

func TestItsChangeTakesTheStorage(t *testing.T) {
	terms, err := fsm.TermsByKind(fsmnode.Capability(), Capability())
	if domains := terms[journal.ActionScaleKotsadm].Domains; err != nil || len(domains) != 1 || domains[0] != journal.DomainStorage {
		t.Errorf("%v: it takes %v", err, domains)
	}
}
