package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// twoPurges is a world with an automatic purge of w1 and a later manual one of
// w2, both planned.
func twoPurges(t *testing.T) (w *world, first, second string) {
	w = due(t, "w1")
	w.decide()
	w.pass(time.Second)
	first, second = w.open(journal.ActionPurgeNode, "w1"), w.mustAdmit(ask("x1")).Action
	w.plan(first)
	w.plan(second)
	return w, first, second
}

func (w *world) wantTurn(runs, waits string) {
	w.t.Helper()
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[runs]); got.Hold {
		w.t.Errorf("%s is held: %s", runs, got.Reason)
	}
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[waits]); !got.Hold {
		w.t.Errorf("%s is not held", waits)
	}
}

func TestThePurgeRequestedFirstRunsFirst(t *testing.T) {
	w, first, second := twoPurges(t)
	w.wantTurn(first, second)
}

func TestAStalledPurgeLetsTheNextOneRun(t *testing.T) {
	w, first, second := twoPurges(t)
	w.startStep(first, "look")
	w.act(first, journal.TypeStepFailed, journal.StepFailed{Step: "look", Attempt: 1})
	w.act(first, journal.TypeActionStalled, journal.ActionStalled{Step: "look"})
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[second]); got.Hold {
		t.Errorf("held: %s", got.Reason)
	}
}

func TestARetriedPurgeWaitsForTheOneThatHasAnOpenStep(t *testing.T) {
	w, first, second := twoPurges(t)
	w.act(first, journal.TypeActionStalled, journal.ActionStalled{Step: "look"})
	w.startStep(second, "look")
	w.act(first, journal.TypeActionRetried, journal.ActionRetried{})
	w.wantTurn(second, first)
}

func TestARetriedPurgeThatHadBegunWaitsForTheOneThatHasAnOpenStep(t *testing.T) {
	w, first, second := twoPurges(t)
	w.startStep(first, "look")
	w.act(first, journal.TypeStepFailed, journal.StepFailed{Step: "look", Attempt: 1})
	w.act(first, journal.TypeActionStalled, journal.ActionStalled{Step: "look"})
	w.startStep(second, "look")
	w.act(first, journal.TypeActionRetried, journal.ActionRetried{})
	w.wantTurn(second, first)
	w.act(second, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.wantTurn(first, second)
}

func TestAReadyNodeDoesNotCountTowardsTheMinimumOfItsOwnPurge(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	rec := *w.s.Actions[w.mustAdmit(ask("p1")).Action]
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleReadyMinimums, rec); got != (fsm.CheckResult{}) {
		t.Errorf("two others are ready, the minimum is two: got %+v", got)
	}
	w.observe("p2", primary, cordoned)
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleReadyMinimums, rec); !got.Warn {
		t.Errorf("one other is ready, the minimum is two: got %+v", got)
	}
}

func TestAnAutomaticPurgeHeldBeforeItsFirstStepDoesNotBlockAPerson(t *testing.T) {
	w, first, second := twoPurges(t)
	w.act(first, journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleReadyMinimums})
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[second]); got.Hold {
		t.Errorf("held: %s", got.Reason)
	}
	w.startStep(second, "look")
	w.wantTurn(second, first)
}

func TestTheOrderOfTurnsIsNotUndoneByAClockSetBack(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2")
	first := w.mustAdmit(ask("w1")).Action
	w.plan(first)
	w.startStep(first, "look")
	w.pass(-time.Hour)
	second := w.mustAdmit(ask("w2")).Action
	w.wantTurn(first, second)
	w.act(first, journal.TypeStepDone, journal.StepDone{Step: "look", Attempt: 1})
	w.wantTurn(first, second)
}

func TestRulesHoldAnAutomaticAction(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	rec := *w.s.Actions[w.open(journal.ActionPurgeNode, "w1")]
	w.observe("w1", excluded, w.asLost("w1"))
	w.p.MaxUnknown = MaxUnknown{}
	w.p.MinReadyWorkers = 50
	w.tell(journal.TypePauseSet, w.node("w1").Subject, journal.PauseSet{Reason: "r"})
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{})
	w.tell(journal.TypeOperatorStopped, journal.OperatorSubject, journal.OperatorStopped{})
	for _, rule := range []string{
		fsm.RuleSafeMode, fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleExcluded, RuleStormBrake, RuleReadyMinimums, "NoSuchRule",
	} {
		if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); !got.Hold || got.Reason == "" {
			t.Errorf("%s: got %+v, want a hold", rule, got)
		}
	}
	rec.Request.Manual = true
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleSafeMode, rec); !got.Hold {
		t.Error("safe mode does not hold a person's action")
	}
}

func TestAPersonIsWarnedOfBothPausesAndNotToldThatEKCOWaits(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.p.MinReadyWorkers = 50
	w.lose("w1")
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{Reason: "the switch"})
	w.tell(journal.TypePauseSet, w.node("w1").Subject, journal.PauseSet{Reason: "the disk"})
	rec := journal.ActionRecord{ID: "p", Kind: journal.ActionPurgeNode, Subject: w.node("w1").Subject}
	rec.Request.Manual = true
	paused := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RulePaused, rec)
	if !paused.Warn || paused.Hold || !strings.Contains(paused.Reason, "the switch") || !strings.Contains(paused.Reason, "the disk") {
		t.Errorf("got %+v, want a warning of both pauses", paused)
	}
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleReadyMinimums, rec); !got.Warn || strings.Contains(got.Reason, "goes on") {
		t.Errorf("got %+v, want a warning that does not say what EKCO waits for", got)
	}
	rec.Request.Manual = false
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleReadyMinimums, rec); !got.Hold || !strings.Contains(got.Reason, "continues when") {
		t.Errorf("got %+v, want a hold that says what lifts it", got)
	}
}

func TestRulesOfPurgesDoNotConcernClears(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.p.MinReadyWorkers = 50
	rec := journal.ActionRecord{ID: "clear-w1-1", Kind: journal.ActionClearNode, Subject: w.node("w1").Subject}
	for _, rule := range []string{RuleReadyMinimums, fsm.RuleOneAtATime, fsm.RuleSettling, fsm.RulePaused} {
		if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); got != (fsm.CheckResult{}) {
			t.Errorf("%s: got %+v, want a pass", rule, got)
		}
	}
}

func TestARuleThatDoesNotKnowTheNodeHoldsAnAutomaticAction(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	rec := journal.ActionRecord{ID: "clear-w2-1", Kind: journal.ActionClearNode, Subject: journal.NodeSubject("w2", uidOf("w2"))}
	for _, rule := range []string{fsm.RulePaused, RuleExcluded} {
		if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); !got.Hold || !strings.Contains(got.Reason, "w2") {
			t.Errorf("%s: got %+v, want a hold that names the node", rule, got)
		}
	}
	rec.Request.Manual = true
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, RuleExcluded, rec); got != (fsm.CheckResult{}) {
		t.Errorf("a person's request for a node that nobody saw: got %+v, want a pass", got)
	}
}

func TestAPersonsPurgeThatIsHeldKeepsItsTurn(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2")
	first := w.mustAdmit(ask("w1")).Action
	w.pass(time.Second)
	second := w.mustAdmit(ask("w2")).Action
	w.act(first, journal.TypeActionHeld, journal.ActionHeld{Preflight: "CephAnswers"})
	w.wantTurn(first, second)
}

func TestAnAutomaticPurgeThatIsHeldKeepsItsTurnBeforeAnotherAutomaticOne(t *testing.T) {
	w, first, second := twoPurges(t)
	w.act(first, journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleReadyMinimums})
	automatic := *w.s.Actions[second]
	automatic.Request.Manual = false
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, automatic); !got.Hold {
		t.Error("two automatic purges run at once")
	}
}

// every is the name of every rule.
func every() []string {
	return []string{
		fsm.RuleSafeMode, fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused, RuleExcluded, RuleStormBrake, RuleReadyMinimums,
		RuleTriedBefore, fsm.RuleBackOff, fsm.RuleOneAtATime, fsm.RuleCooldown,
	}
}

func TestNoRulePassesAnActionOfAKindThatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	for _, manual := range []bool{false, true} {
		rec := journal.ActionRecord{ID: "light-lamp-1", Kind: "light-lamp", Subject: w.node("w1").Subject}
		rec.Request.Manual = manual
		for _, rule := range every() {
			if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); !got.Hold || !strings.Contains(got.Reason, "light-lamp") {
				t.Errorf("%s, manual %v: got %+v, want a hold that names the kind", rule, manual, got)
			}
		}
	}
}

func TestNoRuleAboutOneThingPassesAnActionWhoseSubjectIsNone(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	for _, manual := range []bool{false, true} {
		rec := journal.ActionRecord{
			ID: "purge-lamp-1", Kind: journal.ActionPurgeNode, Subject: journal.Subject{Kind: "Lamp", Name: "hall", UID: "lamp-1"},
		}
		rec.Request.Manual = manual
		for _, rule := range []string{fsm.RulePaused, RuleExcluded, RuleReadyMinimums, RuleTriedBefore, fsm.RuleBackOff} {
			if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); !got.Hold || !strings.Contains(got.Reason, "lamp hall") {
				t.Errorf("%s, manual %v: got %+v, want a hold that names the lamp", rule, manual, got)
			}
		}
	}
}

// The lists are written out here, so that a rule that a kind no longer obeys is missed.
func TestTheRulesThatAreAskedBeforeEachStepAboutANode(t *testing.T) {
	standing, err := fsm.TermsByKind(Capability())
	if err != nil {
		t.Fatal(err)
	}
	clears := []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake"}
	for kind, want := range map[journal.ActionKind][]string{
		journal.ActionClearNode: clears,
		journal.ActionPurgeNode: append(clears, "ReadyMinimums", "OneAtATime"),
	} {
		if got := standing[kind].Rules; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
