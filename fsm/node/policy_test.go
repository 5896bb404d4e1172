package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// storm is a world of 1,000 workers of which 500 are lost, each with a
// terminating pod, and the storm brake at a percentage.
func storm(t failer, limit int) *world {
	w := newWorld(t)
	w.p.MaxUnknown = MaxUnknown{Percent: limit, IsPercent: true}
	for i := range 1000 {
		w.observe(fmt.Sprintf("w%04d", i))
	}
	for i := range 500 {
		name := fmt.Sprintf("w%04d", i)
		w.lose(name)
		w.terminating(name, "pod-"+name)
	}
	return w
}

func TestAStormOf500Of1000NodesIsOneRefusalForEachKind(t *testing.T) {
	w := storm(t, 49)
	w.pass(2 * time.Hour)
	d := w.decide()
	if len(d.Events) != 502 {
		t.Fatalf("got %d events, want 500 transitions and 2 refusals", len(d.Events))
	}
	want := []string{"policy.refused Cluster: clear-node by StormBrake", "policy.refused Cluster: purge-node by StormBrake"}
	if diff := cmp.Diff(want, lines(d.Events[500:])); diff != "" {
		t.Fatal(diff)
	}
	w.observe("w0000") // the numbers in the reason change
	w.wantDecided("node.transitioned w0000: Unknown to Healthy")
	for i := range 9 {
		w.observe(fmt.Sprintf("w%04d", i+1))
	}
	d = w.decide()
	requested := 0
	for _, e := range d.Events {
		if e.Type == journal.TypeActionRequested {
			requested++
		}
	}
	if requested != 490+1 {
		t.Errorf("after the storm: got %d requests, want 490 clears and one purge", requested)
	}
	if len(w.s.Refusals) != 1 || w.s.Refusals[0].Rule != fsm.RuleOneAtATime {
		t.Errorf("refusals: %+v", w.s.Refusals)
	}
}

func TestHalfTheClusterIsBelowTheDefaultBrake(t *testing.T) {
	w := storm(t, 55)
	w.pass(6 * time.Minute)
	if d := w.decide(); len(d.Events) != 1500 {
		t.Errorf("got %d events, want 500 clears with two transitions each", len(d.Events))
	}
}

func TestEachRuleRefusesInItsOrder(t *testing.T) {
	w := due(t, "w1", "w2")
	w.p.MaxUnknown = MaxUnknown{Absolute: 0}
	w.p.MinReadyWorkers = 100
	w.s.EndedAt[journal.ActionPurgeNode] = w.now
	node := w.node("w1").Subject
	w.tell(journal.TypeNodeGone, w.node("w2").Subject, journal.NodeGone{Reason: "deleted"})
	w.tell(journal.TypeNodeObserved, node, journal.NodeObserved{NodeFacts: journal.NodeFacts{
		Role: journal.RoleWorker, Excluded: true, Taints: w.node("w1").Facts.Taints,
	}})
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{DamagedFile: "f"})
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{Reason: "all"})
	w.tell(journal.TypePauseSet, node, journal.PauseSet{Reason: "one"})

	lift := []struct {
		rule string
		end  func()
	}{
		{"SafeMode", func() { w.tell(journal.TypeJournalAccepted, journal.JournalSubject, journal.JournalAccepted{}) }},
		{"APIUnreachable", func() { w.tell(journal.TypeAPIRecovered, journal.ClusterSubject, journal.APIRecovered{}) }},
		{"Settling", func() { w.pass(w.p.Settling) }},
		{"Paused", func() { w.tell(journal.TypePauseCleared, journal.ClusterSubject, journal.PauseCleared{}) }},
		{"Paused", func() { w.tell(journal.TypePauseCleared, node, journal.PauseCleared{}) }},
		{"Excluded", func() { w.observe("w1", w.asLost("w1")) }},
		{"StormBrake", func() { w.p.MaxUnknown.Absolute = 1 }},
		{"ReadyMinimums", func() { w.p.MinReadyWorkers = 0 }},
		{"Cooldown", func() { w.pass(w.p.Cooldown) }},
	}
	for _, step := range lift {
		w.decide()
		if len(w.s.Refusals) != 1 || w.s.Refusals[0].Rule != step.rule {
			t.Fatalf("refusals: %+v, want one by %s", w.s.Refusals, step.rule)
		}
		if w.s.Refusals[0].Reason == "" {
			t.Errorf("%s gives no reason", step.rule)
		}
		step.end()
	}
	w.wantDecided("action.requested w1: purge-node", "node.transitioned w1: Unknown to Purging", "policy.lifted Cluster: purge-node by Cooldown")
}

func TestAnOutageCountsFromWhenItWasFirstNoticed(t *testing.T) {
	w := newWorld(t)
	began := w.now
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	w.pass(time.Hour)
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	if got := w.s.API.LostAt; !got.Equal(began) {
		t.Errorf("lost at: got %s, want %s", got, began)
	}
	w.start()
	if got, want := w.s.API, (fsm.APIState{SettlingFrom: w.now}); got != want {
		t.Errorf("after a start: got %+v, want %+v", got, want)
	}
}

func TestNothingIsRefusedWhenNothingIsWanted(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{})
	w.wantDecided()
}

func TestAPauseThatRanOutIsClearedAndNoLongerRefuses(t *testing.T) {
	w := due(t, "w1")
	drafts, err := fsm.Pause(w.s, w.now, "w1", "disk swap", 2*time.Hour, "cli:root@h")
	if err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	until := w.now.Add(2 * time.Hour)
	if d := w.wantDecided("policy.refused w1: purge-node by Paused"); !d.Next.Equal(until) {
		t.Fatalf("next: got %s, want %s", d.Next, until)
	}
	w.now = until
	w.wantDecided("pause.cleared w1", "action.requested w1: purge-node", "node.transitioned w1: Unknown to Purging", "policy.lifted w1: purge-node by Paused")
}

func TestD10APauseSurvivesARestart(t *testing.T) {
	w := due(t, "w1")
	drafts, err := fsm.Pause(w.s, w.now, "", "migration", 0, "cli:root@h")
	if err != nil {
		t.Fatal(err)
	}
	w.write(drafts...)
	snapshot, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if w.s, err = fsm.LoadState(snapshot, Capability()); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.pass(time.Hour)
	w.wantDecided("policy.refused Cluster: purge-node by Paused")
}
