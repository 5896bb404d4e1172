package node

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// halfDone leaves an automatic purge past its point of no return, one step to go.
func halfDone(t *testing.T) (*world, string) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.act(id, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
		{ID: "delete-node", Does: "delete-node", Irreversible: true},
		{ID: "rest", Does: "rest", Irreversible: true},
	}}})
	w.startStep(id, "delete-node")
	w.act(id, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 1})
	w.gone("w1", "deleted")
	w.decide()
	if !w.s.Actions[id].PastNoReturn {
		t.Fatal("not past its point of no return")
	}
	return w, id
}

func TestAHalfDonePurgeThatOnlyPolicyHoldsKeepsNoPersonOut(t *testing.T) {
	w, id := halfDone(t)
	for _, name := range []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "p1"} {
		w.lose(name)
	}
	w.decide()
	w.pass(24 * time.Hour)
	held := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleStormBrake, *w.s.Actions[id])
	if !held.Hold {
		t.Fatal("no storm")
	}
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "rest", Preflight: RuleStormBrake, Reason: held.Reason})
	w.decide()
	other := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "x0", Actor: "cli:root@p1", Force: true})
	turn := func() fsm.CheckResult {
		return fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[other.Action])
	}
	if got := turn(); got.Hold {
		t.Errorf("the purge of x0 that a person asks for waits: %s", got.Reason)
	}
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "rest", Preflight: "CephHealthy", Reason: "Ceph recovers"})
	if got := turn(); !got.Hold {
		t.Error("the purge of x0 goes on beside one that waits for Ceph")
	}
	w.act(id, journal.TypeActionHeld, journal.ActionHeld{Step: "rest", Preflight: fsm.RuleOneAtATime, Reason: "another comes first"})
	if got := turn(); !got.Hold {
		t.Error("the purge of x0 goes on beside one that waits for its turn only")
	}
}

func TestAHalfDonePurgeThatAPersonJoinsIsHeldByPolicyNoMore(t *testing.T) {
	w, id := halfDone(t)
	for _, name := range []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "p1"} {
		w.lose(name)
	}
	w.p.PurgeDeadNodes = false
	w.decide()
	ask := func() fsm.CheckResult {
		return fsm.CheckRule(w.s, w.p.whole(), w.now, RuleStormBrake, *w.s.Actions[id])
	}
	if got := ask(); !got.Hold {
		t.Fatalf("before anybody joined: %+v", got)
	}
	joined := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", UID: w.s.Actions[id].Subject.UID, Actor: "cli:root@p1", Force: true})
	if !joined.Resumed || joined.Action != id {
		t.Fatalf("admitted %+v, want %s resumed", joined, id)
	}
	if got := ask(); got.Hold || !got.Warn {
		t.Errorf("joined by a person: %+v, want a warning", got)
	}
}

func TestAStalledPurgeThatAPersonAsksForAgainIsHeldByPolicyNoMore(t *testing.T) {
	w, id := halfDone(t)
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: "rest", Reason: "spent"})
	for _, name := range []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "p1"} {
		w.lose(name)
	}
	w.decide()
	joined := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", UID: w.s.Actions[id].Subject.UID, Actor: "cli:root@p1", Force: true})
	if !joined.Resumed || w.s.Actions[id].Stalled != nil {
		t.Fatalf("admitted %+v, want %s with a new budget", joined, id)
	}
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleStormBrake, *w.s.Actions[id]); got.Hold || !got.Warn {
		t.Errorf("asked for by a person: %+v, want a warning", got)
	}
}

func TestAPurgeThatAPersonJoinedIsNotCancelledBecauseItsSettingIsOff(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "look")
	w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", Actor: "cli:root@p1"})
	w.p.PurgeDeadNodes = false
	w.decide()
	if rec := w.s.Actions[id]; rec == nil || rec.Cancelling != nil {
		t.Errorf("the purge is %+v", rec)
	}
}

// The Node object is gone, so its label cannot be removed any more.
func TestAHalfDonePurgeOfAGoneNodeDoesNotWaitForALabelOfIt(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "look")
	w.act(id, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.startStep(id, "delete-node")
	facts := w.node("w1").UnreachableSince
	w.observe("w1", unreachableSince(facts), excluded)
	w.gone("w1", "deleted")
	w.decide()
	w.pass(24 * time.Hour)
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleExcluded, *w.s.Actions[id]); got.Hold {
		t.Errorf("it waits for ever: %s", got.Reason)
	}
}

func TestANewNodeThatFlapsIsNotPurgedInPlaceOfTheOneThatIsHalfDone(t *testing.T) {
	w, id := halfDone(t)
	w.observeUID("w1", "uid-new", unreachableSince(w.now), flapping)
	if admission := w.mustAdmit(ask("w1")); admission.Action != id || !admission.Resumed {
		t.Errorf("admitted %+v, want %s resumed", admission, id)
	}
}

func TestWhatAnActionLeavesAloneIsInItsRecordAfterARestart(t *testing.T) {
	w, id := halfDone(t)
	held := w.s.OpenActions()
	w.act(id, journal.TypeActionLeft, journal.ActionLeft{What: "osd.1", Reason: "w2 has its disk"})
	if got := w.s.Actions[id].Left["osd.1"]; got != "w2 has its disk" {
		t.Errorf("of osd.1 the record says %q", got)
	}
	if len(held[0].Left) > 0 {
		t.Errorf("a record that others hold was changed: %v", held[0].Left)
	}
}
