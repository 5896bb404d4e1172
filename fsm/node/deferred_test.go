package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

const awaited = "StorageAnswers"

// waiting gives the purge a plan whose last steps wait for storage.
func (w *world) waiting(action string) {
	w.t.Helper()
	w.act(action, journal.TypeActionPlanned, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{
		{ID: "delete-node", Does: "delete-node", Irreversible: true},
		{ID: "out", Does: "out", MayWaitFor: awaited},
		{ID: "remove", Does: "remove", After: []string{"out"}, MayWaitFor: awaited},
	}}})
	w.startStep(action, "delete-node")
	w.act(action, journal.TypeActionHeld, journal.ActionHeld{Step: "out", Preflight: awaited, Reason: "no answer"})
	w.act(action, journal.TypeStepDone, journal.StepDone{Step: "delete-node", Attempt: 1})
}

func TestAPurgeThatOnlyWaitsForStorageBlocksNoOther(t *testing.T) {
	w := due(t, "w1", "w2")
	w.decide()
	first := w.open(journal.ActionPurgeNode, "w1")
	w.waiting(first)
	w.pass(w.p.Cooldown)
	w.decide()
	second := w.open(journal.ActionPurgeNode, "w2")
	if got := fsm.CheckRule(w.s, w.p.whole(), w.now, fsm.RuleOneAtATime, *w.s.Actions[second]); got.Hold {
		t.Errorf("the second purge is held: %s", got.Reason)
	}
	// What is left of the first waits while the second has an open step.
	w.plan(second)
	w.startStep(second, "look")
	w.act(first, journal.TypeActionReleased, journal.ActionReleased{Step: "out", Preflight: awaited})
	w.wantTurn(second, first)
}

func TestTheCooldownOfAPurgeThatWaitsForStorageCountsFromItsLastStep(t *testing.T) {
	w := due(t, "w1", "w2")
	w.decide()
	w.waiting(w.open(journal.ActionPurgeNode, "w1"))
	w.pass(w.p.Cooldown - time.Nanosecond)
	w.decide()
	for _, rec := range w.s.OpenActions() {
		if rec.Subject.Name == "w2" && rec.Kind == journal.ActionPurgeNode {
			t.Error("the next purge began within the cooldown")
		}
	}
}

func TestAPurgeIsDeferredOnlyWhileNothingElseIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*journal.ActionRecord)
		want   bool
	}{
		"only such steps are left": {func(*journal.ActionRecord) {}, true},
		"another step is left":     {func(r *journal.ActionRecord) { delete(r.Steps, "delete-node") }, false},
		"it waits for something else": {func(r *journal.ActionRecord) {
			r.Holds["out"] = journal.ActionHeld{Step: "out", Preflight: fsm.RulePaused}
		}, false},
		"it waits for something else that it may": {func(r *journal.ActionRecord) {
			r.Plan.Steps[1].MayAlsoWaitFor = []string{"StorageHealthy"}
			r.Holds["out"] = journal.ActionHeld{Step: "out", Preflight: "StorageHealthy", Reason: "no answer"}
		}, true},
		"it waits for nothing":     {func(r *journal.ActionRecord) { clear(r.Holds) }, false},
		"it stalled":               {func(r *journal.ActionRecord) { r.Stalled = &journal.ActionStalled{} }, false},
		"a step is under way":      {func(r *journal.ActionRecord) { r.Steps["out"] = journal.StepRecord{Attempts: 1, Open: true} }, false},
		"nothing has happened yet": {func(r *journal.ActionRecord) { r.PastNoReturn = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := due(t, "w1")
			w.decide()
			id := w.open(journal.ActionPurgeNode, "w1")
			w.waiting(id)
			rec := w.s.Actions[id]
			test.change(rec)
			if hold, got := rec.Deferred(); got != test.want || (got && hold.Reason != "no answer") {
				t.Errorf("deferred: %v by %+v, want %v", got, hold, test.want)
			}
		})
	}
}

func TestARequestCarriesTheLastFactsOfANodeDeletedByHand(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	want := w.observe("w1", func(f *journal.NodeFacts) { f.InternalIP, f.Hostname = "10.0.0.7", "w1.local" }).Facts
	w.gone("w1", "deleted")
	w.decide()
	rec := w.s.Actions[w.mustAdmit(ask("w1")).Action]
	if diff := cmp.Diff(&want, journal.PurgeInputOf(rec.Request).Node); diff != "" {
		t.Error(diff)
	}
}

func TestAskingAgainFinishesThePurgeOfTheReplacedNodeAndLeavesItsReplacementAlone(t *testing.T) {
	w := due(t, "w1")
	w.decide()
	first := w.open(journal.ActionPurgeNode, "w1")
	w.waiting(first)
	w.gone("w1", "deleted")
	w.decide()
	w.observeUID("w1", "uid-new")
	w.decide()
	if got := w.mustAdmit(ask("w1")); got.Action != first || !got.Resumed {
		t.Errorf("admitted %+v, want %s resumed", got, first)
	}
	request := ask("w1")
	request.Force = true
	if got := w.s.Actions[w.mustAdmit(request).Action].Subject.UID; got != "uid-new" {
		t.Errorf("forced, the purge is of %s, want the present node", got)
	}
}

func TestD12WhoeverAsksTwiceGetsOnePurgeAndWhoAskedAndWhyIsOnRecord(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.lose("w1")
	w.decide()
	first := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", Actor: "cli:ann@h1", Reason: "its disk is dead"})
	second := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", Actor: "cli:ben@h2", Reason: "smoke"})
	if len(second.Events) != 1 || second.Events[0].Type != journal.TypeActionJoined || second.Events[0].Actor != "cli:ben@h2" ||
		second.Events[0].Payload != (journal.ActionJoined{Reason: "smoke"}) {
		t.Errorf("the second is on record as %+v", second.Events)
	}
	if again := w.mustAdmit(Request{Kind: journal.ActionPurgeNode, Node: "w1", Actor: "cli:ann@h1"}); len(again.Events) != 0 {
		t.Errorf("the first asked again, and that is recorded: %+v", again.Events)
	}
	w.pass(w.p.PurgeAfter)
	w.decide()
	rec := w.s.Actions[w.open(journal.ActionPurgeNode, "w1")]
	if !second.Resumed || second.Action != first.Action || rec.ID != first.Action {
		t.Errorf("got %+v and then %+v; open is %s", first, second, rec.ID)
	}
	if rec.RequestedBy != "cli:ann@h1" || rec.Request.Reason != "its disk is dead" {
		t.Errorf("on record is %s, %q", rec.RequestedBy, rec.Request.Reason)
	}
}
