package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func ask(node string) Request {
	return Request{Kind: journal.ActionPurgeNode, Node: node, Actor: "cli:root@h"}
}

// admit asks, and folds what comes of it.
func (w *world) admit(request Request) (Admission, error) {
	w.t.Helper()
	admission, err := Admit(w.s, w.p.whole(), w.now, request)
	w.write(admission.Events...)
	return admission, err
}

func (w *world) mustAdmit(request Request) Admission {
	w.t.Helper()
	admission, err := w.admit(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(w.s.Problems) > 0 {
		w.t.Fatalf("problems: %q", w.s.Problems)
	}
	return admission
}

func (w *world) wantRefused(request Request, rule, reason string) {
	w.t.Helper()
	admission, err := w.admit(request)
	var refused *fsm.RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, fsm.ErrRefused) || refused.Rule != rule {
		w.t.Fatalf("got %v, want a refusal by %s", err, rule)
	}
	if diff := cmp.Diff([]string{"action.refused " + request.Node}, lines(admission.Events)); diff != "" {
		w.t.Fatal(diff)
	}
	if !strings.Contains(err.Error(), reason) {
		w.t.Errorf("reason %q does not say %q", err, reason)
	}
}

func TestAPersonMayPurgeANodeThatIsNotReady(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.p.MinReadyPrimaries, w.p.MinReadyWorkers = 50, 50
	w.lose("p1", primary)
	w.decide()
	request := ask("p1")
	request.Warned = []journal.ActionWarned{{Preflight: "EtcdQuorumKept", Warning: "two members", Answer: "--yes"}}
	admission := w.mustAdmit(request)
	want := []string{"action.requested p1: purge-node", "node.transitioned p1: Unknown to Purging", "action.warned p1"}
	if diff := cmp.Diff(want, lines(admission.Events)); diff != "" {
		t.Fatal(diff)
	}
	if admission.Action != w.open(journal.ActionPurgeNode, "p1") {
		t.Errorf("action: %q", admission.Action)
	}
	w.wantDecided()
}

func TestTheManualGuardKeepsTheMinimumOfReadyNodes(t *testing.T) {
	w := newWorld(t)
	w.observe("p1", primary)
	w.observe("p2", primary)
	w.observe("w1")
	w.wantRefused(ask("p1"), RuleReadyMinimums, "--force")

	w.mustAdmit(ask("w1")) // one ready worker is more than the minimum of none

	forced := ask("p1")
	forced.Force = true
	id := w.mustAdmit(forced).Action
	if request := w.s.Actions[id].Request; !request.Force || !request.Manual || !journal.PurgeInputOf(request).Live {
		t.Errorf("request: %+v", request)
	}
	w.wantDecided()
	w.wantState("p1", Purging)
}

func TestTheRecordOfARefusalAdmitsNothing(t *testing.T) {
	w := newWorld(t)
	w.observe("p1", primary)
	request := ask("p1")
	request.Refused = true
	w.wantRefused(request, RuleReadyMinimums, "--force")

	w.lose("p1", primary)
	if admission, err := w.admit(request); !errors.Is(err, fsm.ErrNotRefused) || len(admission.Events) != 0 || admission.Action != "" {
		t.Errorf("got %+v, %v", admission, err)
	}
}

func TestAPersonsOwnMinimumsStandInForThePolicys(t *testing.T) {
	w := newWorld(t)
	w.observe("p1", primary)
	w.observe("p2", primary)
	w.observe("w1")
	w.observe("w2")
	one, two := 1, 2
	strict := ask("w1")
	strict.MinReadyWorkers = &two
	w.wantRefused(strict, RuleReadyMinimums, "at least 2 must remain")

	lenient := ask("p1")
	lenient.MinReadyWorkers, lenient.MinReadyPrimaries = &two, &one
	w.mustAdmit(lenient)
}

func TestAReadyPrimaryAboveTheMinimumIsPurgedOnRequest(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.mustAdmit(ask("p1"))
}

func TestAPurgeThatIsOpenIsResumed(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "delete-node")
	w.gone("w1", "deleted")
	admission := w.mustAdmit(ask("w1"))
	if !admission.Resumed || admission.Action != id {
		t.Errorf("admission: %+v", admission)
	}
	if diff := cmp.Diff([]string{"action.joined w1"}, lines(admission.Events)); diff != "" {
		t.Error(diff)
	}
}

func TestAStalledPurgeGetsANewBudgetWhenItIsAskedForAgain(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	id := w.open(journal.ActionPurgeNode, "w1")
	w.plan(id)
	w.startStep(id, "look")
	w.act(id, journal.TypeStepFailed, journal.StepFailed{Step: "look", Attempt: 1, Error: "no"})
	w.act(id, journal.TypeActionStalled, journal.ActionStalled{Step: "look", Reason: "spent"})
	admission := w.mustAdmit(ask("w1"))
	if diff := cmp.Diff([]string{"action.retried w1", "action.joined w1"}, lines(admission.Events)); diff != "" {
		t.Fatal(diff)
	}
	rec := w.s.Actions[id]
	if rec.Status != fsm.Running || rec.Stalled != nil || rec.Steps["look"].Attempts != 0 {
		t.Errorf("record: %+v", rec)
	}
}

func TestAPersonsRequestReplacesAnAutomaticPurgeThatPolicyHolds(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	automatic := w.open(journal.ActionPurgeNode, "w1")
	w.act(automatic, journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleStormBrake, Reason: "storm"})
	admission := w.mustAdmit(ask("w1"))
	if admission.Resumed || admission.Action == automatic {
		t.Fatalf("admission: %+v", admission)
	}
	if got := w.s.Actions[automatic].Status; got != fsm.Cancelling {
		t.Errorf("the automatic purge is %s", got)
	}
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[admission.Action]); got.Hold {
		t.Errorf("the manual purge is held: %s", got.Reason)
	}
	w.wantDecided()
	w.end(automatic, journal.OutcomeCancelled)
	w.wantDecided()
	w.wantState("w1", Purging)
	w.end(admission.Action, journal.OutcomeDone)
	w.wantDecided("node.transitioned w1: Purging to Purged")
	if again := w.mustAdmit(ask("w1")); !again.AlreadyDone || len(again.Events) != 0 {
		t.Errorf("asked again: %+v", again)
	}
}

func TestADryRunDoesNotReplaceAHeldPurge(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.act(w.open(journal.ActionPurgeNode, "w1"), journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleStormBrake})
	dry := ask("w1")
	dry.DryRun = true
	w.wantRefused(dry, fsm.RuleOneAtATime, "is not a dry run")
	for _, past := range []bool{false, true} {
		rec := w.s.Actions[w.open(journal.ActionPurgeNode, "w1")]
		rec.PastNoReturn = past
		_, err := w.admit(dry)
		if refused, is := errors.AsType[*fsm.RefusedError](err); !is || strings.Contains(refused.Reason, "ekco cancel") == past {
			t.Errorf("past the point of no return %t: %v", past, err)
		}
	}
}

func TestAReplacedPurgeThatEndsLateDoesNotUndoTheDoneOne(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	automatic := w.open(journal.ActionPurgeNode, "w1")
	w.act(automatic, journal.TypeActionHeld, journal.ActionHeld{Preflight: RuleStormBrake})
	w.end(w.mustAdmit(ask("w1")).Action, journal.OutcomeDone)
	w.end(automatic, journal.OutcomeCancelled)
	w.wantDecided("node.transitioned w1: Purging to Purged")
}

func TestADryRunDoesNotJoinARealPurgeNorTheOtherWayRound(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	dry := ask("w1")
	dry.DryRun = true
	w.wantRefused(dry, fsm.RuleOneAtATime, "is not a dry run")
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeCancelled)
	w.decide()
	w.mustAdmit(dry)
	w.wantRefused(ask("w1"), fsm.RuleOneAtATime, "is a dry run")
}

func TestAPurgeThatIsBeingCancelledIsNotResumed(t *testing.T) {
	w := due(t, "w1")
	id := w.mustAdmit(ask("w1")).Action
	w.act(id, journal.TypeActionCancelling, journal.ActionCancelling{Reason: "no"})
	w.wantRefused(ask("w1"), fsm.RuleCancelling, "being cancelled")
}

func TestANodeDeletedByHandIsPurgedOnRequest(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.gone("w1", "deleted")
	w.decide()
	w.mustAdmit(ask("w1"))
	w.wantDecided()
	w.wantState("w1", Purging)
}

func TestAManualPurgeIsFinishedWhenSomebodyElseDeletesTheNode(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.mustAdmit(ask("w1"))
	w.gone("w1", "deleted")
	w.wantDecided()
	w.observeUID("w1", "uid-new")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Purging to Gone")
}

func TestAPersonsPurgeOfALostNodeIsGivenUpWhenTheNodeAnswersAgain(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.mustAdmit(ask("w1"))
	w.observe("w1")
	w.wantDecided("action.cancelling w1", "node.transitioned w1: Purging to Healthy")
}

func TestSafeModeRefusesAPersonAndNamesTheWayOut(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{DamagedFile: "f"})
	forced := ask("w1")
	forced.Force = true
	w.wantRefused(forced, fsm.RuleSafeMode, "ekco journal accept")
}

func TestPauseStormExclusionAndOutageDoNotRefuseAPerson(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.lose("w1", excluded)
	w.p.MaxUnknown = MaxUnknown{}
	w.p.MinReadyWorkers = 9
	w.tell(journal.TypePauseSet, journal.ClusterSubject, journal.PauseSet{})
	w.tell(journal.TypeAPILost, journal.ClusterSubject, journal.APILost{})
	id := w.mustAdmit(ask("w1")).Action
	rec := *w.s.Actions[id]
	for _, rule := range []string{fsm.RulePaused, RuleStormBrake, RuleExcluded, fsm.RuleAPIUnreachable, RuleReadyMinimums} {
		if got := fsm.CheckRule(w.s, w.p.whole(), w.now, rule, rec); !got.Warn || got.Hold || got.Reason == "" {
			t.Errorf("%s: got %+v, want a warning", rule, got)
		}
	}
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleSettling, rec); got != (fsm.CheckResult{}) {
		t.Errorf("Settling: got %+v, want a pass", got)
	}
}

func TestAnUnknownNodeIsAnErrorWithNearNames(t *testing.T) {
	w := newWorld(t)
	w.cluster("worker-1", "worker-2", "db")
	_, err := w.admit(ask("worker1"))
	var unknown *UnknownNodeError
	if !errors.As(err, &unknown) || !errors.Is(err, ErrUnknownNode) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"worker-1", "worker-2"}, unknown.Near); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(err.Error(), "did you mean worker-1 or worker-2?") {
		t.Error(err)
	}
}

func TestANameInCapitalsIsNearTheNodeThatIsMeant(t *testing.T) {
	w := newWorld(t)
	w.cluster("worker-1", "Db.Example")
	for typed, want := range map[string]string{"WORKER-1": "worker-1", "Worker1": "worker-1", "db.example": "Db.Example"} {
		_, err := w.admit(ask(typed))
		if err == nil || !strings.Contains(err.Error(), "did you mean "+want+"?") {
			t.Errorf("%s: %v", typed, err)
		}
	}
}

func TestAPurgedNodeIsNotWhatWasMeant(t *testing.T) {
	w := newWorld(t)
	w.cluster("worker-1", "worker-2")
	Of(w.s, uidOf("worker-2")).State = Purged
	_, admitErr := w.admit(ask("worker-22"))
	_, pauseErr := fsm.Pause(w.s, w.now, "worker-22", "r", 0, "a")
	for _, err := range []error{admitErr, pauseErr} {
		if err == nil || !strings.Contains(err.Error(), "did you mean worker-1?") || strings.Contains(err.Error(), "or worker-2") {
			t.Errorf("offers a purged node: %v", err)
		}
	}
}

func TestOnlyAPurgeCanBeAskedFor(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	_, err := w.admit(Request{Kind: journal.ActionClearNode, Node: "w1"})
	if !errors.Is(err, fsm.ErrRefused) {
		t.Fatal(err)
	}
}

func TestPurgedNodesReplacementIsAnotherMachineToAdmission(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	w.end(w.open(journal.ActionPurgeNode, "w1"), journal.OutcomeDone)
	w.gone("w1", "deleted")
	w.decide()
	w.pass(time.Hour)
	w.observeUID("w1", "uid-new")
	admission := w.mustAdmit(ask("w1"))
	if got := w.s.Actions[admission.Action].Subject.UID; got != "uid-new" {
		t.Errorf("the purge is of %s", got)
	}
}

func TestWhatIsSaidOfRookIsOnRecordAndCountsOnlyForAPurgeThatBegins(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	yes, no := true, false
	request := ask("w1")
	request.MaintainRook = &yes
	admission := w.mustAdmit(request)
	if said := journal.PurgeInputOf(w.s.Actions[admission.Action].Request).MaintainRook; said == nil || !*said {
		t.Errorf("on record: %v", said)
	}
	for name, test := range map[string]struct {
		asked *bool
		told  bool
	}{"the same": {&yes, false}, "nothing": {nil, false}, "otherwise": {&no, true}} {
		request.MaintainRook = test.asked
		if again := w.mustAdmit(request); !again.Resumed || strings.Contains(again.Message, "does not apply to it") != test.told {
			t.Errorf("asked for %s: %+v", name, again)
		}
	}
	w.lose("w2")
	request = ask("w2")
	w.mustAdmit(request)
	w.p.MaintainRook, request.MaintainRook = true, &yes
	if again := w.mustAdmit(request); strings.Contains(again.Message, "as it began") {
		t.Errorf("asked for what the setting says: %+v", again)
	}
}
