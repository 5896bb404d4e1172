package loadbalancer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestEachKindOfActionWaitsForWhatItMustWaitFor(t *testing.T) {
	always := []string{fsm.RuleAPIUnreachable, fsm.RuleSettling, fsm.RulePaused}
	want := map[journal.ActionKind][]string{
		journal.ActionUpdateLoadBalancer:  append(slices.Clone(always), RuleRollout),
		journal.ActionRestartLoadBalancer: append(slices.Clone(always), RuleRollout, fsm.RuleOneAtATime),
		journal.ActionNoteLoadBalancers:   always,
	}
	for _, kind := range kinds() {
		if !slices.Equal(kind.Rules, want[kind.Name]) || kind.SwitchedOff(fsm.DefaultPolicy()) != Off {
			t.Errorf("%s has rules %q, and is off because %q", kind.Name, kind.Rules, kind.SwitchedOff(fsm.DefaultPolicy()))
		}
	}
}

// TestALookThatEndsEarlyLeavesNothingProved: it may have changed the files by then.
func TestALookThatEndsEarlyLeavesNothingProved(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.Pass(checkInterval)
	w.open()
	w.ends("p1", journal.OutcomeCancelled)
	w.state("p1", Behind)
	w.settles()
	w.Pass(time.Hour)
	w.settles()
	w.state("p1", InStep)
}

// TestALookThatDoesNotBeginLeavesWhatIsProved: nothing was done.
func TestALookThatDoesNotBeginLeavesWhatIsProved(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.Pass(checkInterval)
	w.open()
	w.End(w.Open(journal.LoadBalancer("p1")), journal.OutcomeCancelled)
	if of(w.S.Things[fsm.Key(journal.LoadBalancer("p1"))]).Proved == nil {
		t.Error("nothing is proved any more")
	}
}

// TestWhatWasDoneToTheLastNodeOfTheNameIsNotProvedOfThis: its action may end after this was seen.
func TestWhatWasDoneToTheLastNodeOfTheNameIsNotProvedOfThis(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.open()
	another := facts("p1", true, true)
	another.NodeUID = "uid-another"
	w.Observe(Machine, journal.LoadBalancer("p1"), another)
	w.ends("p1", journal.OutcomeDone)
	if proved := of(w.S.Things[fsm.Key(journal.LoadBalancer("p1"))]).Proved; proved != nil {
		t.Errorf("proved is %+v", proved)
	}
}

func TestWhatIsGoneIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("w1", true)
	w.open()
	w.gone("w1")
	w.wants("update p1 10.0.0.1", "update w1 10.0.0.1: EKCO no longer manages the load balancer: the node was deleted")
}

// TestANodeThatIsAwayIsNeitherRestartedNorLookedAt: what is asked for would end at once, and be asked for again.
func TestANodeThatIsAwayIsNeitherRestartedNorLookedAt(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("w1", true)
	w.settles()
	w.see("w1", false)
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	lines := w.settles()
	w.set(func(p *Policy) { p.Image = image })
	lines = append(lines, w.settles()...)
	w.Pass(2 * checkInterval)
	for _, line := range append(lines, w.open()...) {
		if !strings.HasPrefix(line, "update p1 ") && !strings.HasPrefix(line, "restart p1 ") {
			t.Errorf("asked for is %q", line)
		}
	}
}

func TestAnotherFileVersionOrImageIsNotWhatThereIs(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.set(func(p *Policy) { p.Version = "1" })
	w.wants("restart p1 10.0.0.1")
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.wants("restart p1 10.0.0.1: it is out of date; want: the primaries are 10.0.0.1, image haproxy:2")
}

// TestWithoutPrimariesTheListIsNotWritten: nothing is in step with nothing.
func TestWithoutPrimariesTheListIsNotWritten(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "")
	w.see("w1", false)
	w.Pass(time.Hour)
	w.Decide()
	if rec := w.Open(listSubject); rec != nil {
		t.Errorf("%s is asked for", rec.ID)
	}
}

func TestAPrimaryThatNeverHadAnAddressIsNone(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	bare := facts("p2", true, true)
	bare.Address = ""
	w.Observe(Machine, journal.LoadBalancer("p2"), bare)
	w.wants("update p1 10.0.0.1")
	w.ends("p1", journal.OutcomeDone)
	w.wants("update p2 10.0.0.1")
}

// TestAStalledOneTakesNoPlaceAndMayGoOn: then more are open than are begun at a time.
func TestAStalledOneTakesNoPlaceAndMayGoOn(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	for i := range maxOpenUpdates {
		w.see(fmt.Sprintf("w%d", i), true)
	}
	w.settles()
	for i := range 3 * maxOpenUpdates {
		w.see(fmt.Sprintf("w%d", 100+i), true)
	}
	open := w.open()
	if len(open) != maxOpenUpdates {
		t.Fatalf("%d are open", len(open))
	}
	stalled := w.records()[0]
	step := journal.StepWriteLoadBalancer + " " + stalled.Subject.Name
	stalled.Steps = map[string]journal.StepRecord{step: {Failures: 10}}
	stalled.Stalled = &journal.ActionStalled{Step: step, Reason: "the disk is full"}
	w.S.Changed(Machine)
	if more := w.open(); len(more) != maxOpenUpdates+1 {
		t.Fatalf("%d are open", len(more))
	}
	stalled.Stalled = nil
	w.S.Changed(Machine)
	if same := w.open(); len(same) != maxOpenUpdates+1 {
		t.Errorf("%d are open", len(same))
	}
}

// TestAStartThatNobodyHasSeenYetSaysNothing: EKCO proves what it has started before others see it.
func TestAStartThatNobodyHasSeenYetSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.started["p1"] = w.Now
	w.settles()
	w.state("p1", InStep)
}

// TestTheListOfAnotherNamespaceIsNoneAnyMore: host_task_namespace may be another one by now.
func TestTheListOfAnotherNamespaceIsNoneAnyMore(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "")
	w.see("p1", true)
	w.settlesNodes()
	w.Observe(Machine, journal.LoadBalancerList("other"), journal.LoadBalancerListFacts{UID: "u-2"})
	w.settlesNodes()
	w.Decide()
	if w.Open(journal.LoadBalancerList("other")) == nil {
		t.Error("the list that was seen last is not written")
	}
}

// settlesNodes brings all load balancers in step, and leaves the list.
func (w *world) settlesNodes() {
	w.T.Helper()
	for again := true; again; {
		again = false
		w.Decide()
		for _, rec := range w.records() {
			if rec.Kind != journal.ActionNoteLoadBalancers {
				w.ends(rec.Subject.Name, journal.OutcomeDone)
				again = true
			}
		}
	}
}

func (w *world) records() (all []*journal.ActionRecord) {
	for _, rec := range w.S.Actions {
		all = append(all, rec)
	}
	return all
}

func TestARolloutOnlyKeepsFromBeginning(t *testing.T) {
	standing, err := fsm.TermsByKind(Capability())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		if rules := standing[kind].Rules; len(rules) == 0 || slices.Contains(rules, RuleRollout) {
			t.Errorf("%s is asked again about %q", kind, rules)
		}
	}
}

// changedAndLost has w10 lost soon after its change.
func (w *world) changedAndLost() {
	w.nodes(4)
	w.writes = true
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.ends("w10", journal.OutcomeDone)
	w.Pass(time.Minute)
	w.see("w10", false)
}

func TestRolloutStaysStoppedWhenALostNodeIsSeenAgain(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.started["w10"] = w.Now
	w.see("w10", false)
	w.stopped("w10")
}

// TestRolloutDoesNotCountTimeWithoutEKCO: EKCO may run on the node that is lost.
func TestRolloutDoesNotCountTimeWithoutEKCO(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.writes = true
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.ends("w10", journal.OutcomeDone)
	w.Pass(time.Hour)
	w.Write(journal.Draft{Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Payload: journal.OperatorStarted{Version: "2"}})
	w.see("w10", false)
	w.stopped("w10")
}

func TestRolloutForgetsALostNodeThatWasGone(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.gone("w10")
	w.see("w10", false)
	if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

func TestRestartsStopAtANodeThatIsLostDuringOne(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	open := w.opens()
	if len(open) != 1 {
		t.Fatalf("open are %q", open)
	}
	w.begins(open[0])
	w.see(open[0], false)
	w.stopped(open[0], open[0])
}

func TestAPIServersThatForbidAnonymousRequestsHaveAnotherProbe(t *testing.T) {
	w := newWorld(t)
	w.status = 403
	w.see("p1", true)
	w.settles()
	if proved := of(w.S.Things[fsm.Key(journal.LoadBalancer("p1"))]).Proved; proved.Version != "0-tcp" {
		t.Errorf("the manifest has version %q", proved.Version)
	}
}

func TestAnAPIServerThatRefusedAnonymousRequestsIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.status = 401
	w.see("p1", true)
	w.settles()
	w.status = 200 // as another API server answers
	w.Pass(checkInterval)
	w.has["p1"] = image
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.open()
	if input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer("p1")).Request); err != nil || input.Version != "0-tcp" {
		t.Errorf("%v: %+v", err, input)
	}
}

func TestNothingIsRestartedWhileAnotherNodeIsChanged(t *testing.T) {
	w := newWorld(t)
	w.started["w10"] = w.Now
	w.nodes(4)
	w.Pass(2 * checkBackoff)
	w.started["w10"] = w.Now
	w.see("w10", true)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Fatalf("open are %q", open)
	}
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("open are %q", open)
	}
}

func TestALookAtWhatIsVerifiedNeedsNoCheck(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.Pass(checkInterval)
	w.wants("update p1 10.0.0.1")
	if input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer("p1")).Request); err != nil || input.CheckWith != "" {
		t.Errorf("%v: %+v", err, input)
	}
}

// TestAManifestForRefusalsIsNoReasonToRestart: another EKCO may have written it.
func TestAManifestForRefusalsIsNoReasonToRestart(t *testing.T) {
	w := newWorld(t)
	w.versions["p1"] = "0-tcp"
	w.see("p1", true)
	if all := w.settles(); !slices.Equal(all, []string{"update p1 10.0.0.1"}) {
		t.Errorf("asked for are %q", all)
	}
}

func TestAnotherManifestIsTriedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.wants("restart p1 10.0.0.1")
	w.status = 401
	w.ends("p1", journal.OutcomeCancelled)
	w.wants("update p1 10.0.0.1")
}

func TestADryRunIsNotBlamedForALostNode(t *testing.T) {
	rec := &journal.ActionRecord{ID: "a-1", Steps: map[string]journal.StepRecord{journal.StepWriteLoadBalancer + " w10": {Attempts: 1}}}
	for _, dry := range []bool{false, true} {
		rec.Request.DryRun = dry
		if why := new(balancer).reasonNodeGotWorse("w10", rec); (why == "") != dry {
			t.Errorf("dry run %v: %q", dry, why)
		}
	}
}

// TestAStalledChangeOfALostNodeStays: it may be why the node is lost, and says so.
func TestAStalledChangeOfALostNodeStays(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.begins("w10")
	rec := w.Open(journal.LoadBalancer("w10"))
	w.Write(journal.Draft{
		Type: journal.TypeActionStalled, Subject: rec.Subject, Action: rec.ID,
		Payload: journal.ActionStalled{Step: journal.StepWriteLoadBalancer + " w10", Reason: "the node is not ready"},
	})
	w.see("w10", false)
	w.set(func(p *Policy) { p.Layout = "l3" })
	w.stopped("w10", "w10")
	if rec.Cancelling != nil {
		t.Errorf("it is cancelled: %+v", rec.Cancelling)
	}
}

func TestRolloutStopsAtALostPrimaryForAllToSee(t *testing.T) {
	w := newWorld(t)
	w.nodes(0)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.begins("p1")
	w.see("p1", false)
	w.stopped("p1", "p1")
}
