package loadbalancer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestPrimariesComeToOneNodeAfterTheOther(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p2", "w1", "p1"} {
		w.see(name, true)
	}
	w.wants("update w1 10.0.0.1 10.0.0.2")
	w.state("w1", Updating)
	w.state("p1", Behind)
	w.ends("w1", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1 10.0.0.2")
	w.settles()
	w.state("w1", InStep)
	w.see("p3", true)
	w.state("w1", Updating)
	if got := w.rollout(); !slices.Equal(got, []string{"w1", "p3", "p1", "p2"}) {
		t.Errorf("batches are %q", got)
	}
	w.gone("p2")
	w.wants("update w1 10.0.0.1 10.0.0.3")
	w.state("p2", Removed)
	w.settles()
	w.Pass(23 * time.Hour)
	w.wants()
}

func TestALostPrimaryStaysAndOneThatWasNeverReadyIsNone(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("p2", false)
	w.wants("update p1 10.0.0.1")
	w.settles()
	w.see("p2", true)
	w.wants("update p2 10.0.0.1 10.0.0.2")
	w.settles()
	w.see("p2", false)
	w.wants()
	w.state("p1", InStep)
}

func TestAPrimaryThatIsWithoutAddressForAWhileIsLedToAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("p2", true)
	w.settles()
	without := facts("p2", true, true)
	without.Address = ""
	w.Observe(Machine, journal.LoadBalancer("p2"), without)
	w.wants()
	w.state("p1", InStep)
	without.NodeUID = "uid-other"
	w.Observe(Machine, journal.LoadBalancer("p2"), without) // and this one never had any
	w.state("p1", Updating)
}

func TestWhatNobodyLookedAfterIsNotProved(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.Gone(Machine, journal.LoadBalancer("p1"), Off)
	w.see("p1", true)
	w.wants("update p1 10.0.0.1")
}

func TestWhatAChangeHasWrittenTooIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	change := func(internal bool) *journal.ActionRecord {
		input := journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: internal}
		admission, err := fsm.Admit(w.S, w.P, w.Now, fsm.Request{Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: "cli:a", Input: w.JSON(input)})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(admission.Events...)
		return w.Open(journal.Kubeconfigs)
	}
	w.End(change(true), journal.OutcomeCancelled)
	if again := change(false); len(w.opened("p1")) != 1 {
		t.Errorf("open are %q", w.opened("p1"))
	} else {
		w.End(again, journal.OutcomeDone)
	}
	w.reasons("change-load-balancer wrote it, with the primaries at the time of its request; the primaries are 10.0.0.1", "p1")
	w.settles()
	w.End(change(false), journal.OutcomeDone)
	w.wants()
}

// opened is what is open about a node once EKCO has decided.
func (w *world) opened(name string) (kinds []journal.ActionKind) {
	w.Decide()
	if rec := w.Open(journal.LoadBalancer(name)); rec != nil {
		kinds = append(kinds, rec.Kind)
	}
	return kinds
}

func TestAnEmptyListIsNeverAskedFor(t *testing.T) {
	w := newWorld(t)
	w.see("w1", true)
	w.wants()
	w.see("p1", true)
	w.settles()
	w.gone("p1")
	w.Pass(24 * time.Hour)
	w.wants()
}

func TestAStragglerIsDoneWhenItReturnsAndHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("w1", false)
	w.wants("update p1 10.0.0.1")
	w.settles()
	w.state("w1", Behind)
	w.see("w1", true)
	w.wants("update w1 10.0.0.1")
	w.see("w1", false)
	w.wants("update w1 10.0.0.1: the node is not ready; EKCO updates its load balancer when it is")
	w.ends("w1", journal.OutcomeCancelled)
	w.wants()
	w.see("w1", true)
	w.wants("update w1 10.0.0.1")
}

func TestAnotherImageIsBroughtToOneNodeAtATime(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1", "w2"} {
		w.see(name, true)
		w.has[name] = image
	}
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	var restarted []string
	for range 3 {
		open := w.open()
		if len(open) != 1 || !strings.HasPrefix(open[0], "restart ") {
			t.Fatalf("open are %q", open)
		}
		for _, rec := range w.S.Actions {
			restarted = append(restarted, rec.Subject.Name)
			if want := "HAProxy has image haproxy:1 and file version 0, and should have haproxy:2 and 0"; rec.Request.Reason != want {
				t.Errorf("it is asked for since %s", rec.Request.Reason)
			}
			w.ends(rec.Subject.Name, journal.OutcomeDone)
		}
	}
	w.wants()
	if slices.Sort(restarted); !slices.Equal(restarted, []string{"p1", "w1", "w2"}) {
		t.Errorf("restarted were %q", restarted)
	}
}

func TestThePrimariesComeBeforeTheManifest(t *testing.T) {
	w := newWorld(t)
	w.has["w1"] = "" // the node has none yet
	w.see("p1", true)
	w.see("w1", true)
	w.wants("update w1 10.0.0.1")
	w.ends("w1", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1")
	w.ends("p1", journal.OutcomeDone)
	w.wants("restart w1 10.0.0.1")
	if reason := w.Open(journal.LoadBalancer("w1")).Request.Reason; reason != "there is no HAProxy on the node; it should have image haproxy:1" {
		t.Error(reason)
	}
	w.see("p2", true)
	w.wants("restart w1 10.0.0.1: it is out of date; want: the primaries are 10.0.0.1, 10.0.0.2, image haproxy:1")
	w.End(w.Open(journal.LoadBalancer("w1")), journal.OutcomeCancelled)
	w.wants("update w1 10.0.0.1 10.0.0.2")
}

func TestWhatHasBegunGoesOnAndWhatIsWantedByThenFollowsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.open()
	w.Play(w.Open(journal.LoadBalancer("p1")), journal.StepWriteLoadBalancer+" p1", map[string]any{"result": journal.LoadBalancerOnNode{Backend: "b", Image: image, Version: "0"}})
	w.see("p2", true)
	w.wants("update p1 10.0.0.1")
	w.End(w.Open(journal.LoadBalancer("p1")), journal.OutcomeDone)
	w.wants("update p2 10.0.0.1 10.0.0.2")
	w.ends("p2", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1 10.0.0.2")
}

func TestWhatWasEndedEarlyIsProvedNoMoreAndTriedAgainAfterAMinute(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.see("p2", true)
	w.open()
	w.ends("p2", journal.OutcomeDone)
	w.open()
	w.ends("p1", journal.OutcomeCancelled)
	w.wants()
	w.state("p1", Behind)
	w.Pass(time.Minute - time.Second)
	w.wants()
	w.Pass(time.Second)
	w.wants("update p1 10.0.0.1 10.0.0.2")
}

func TestANodeOfTheSameNameIsAnother(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.see("w1", true)
	w.settles()
	other := facts("w1", false, true)
	other.NodeUID = "uid-other"
	w.Observe(Machine, journal.LoadBalancer("w1"), other)
	w.Decide()
	rec := w.Open(journal.LoadBalancer("w1"))
	input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
	if err != nil || input.NodeUID != "uid-other" || rec.Request.Reason != "it was not verified yet; the primaries are 10.0.0.1" {
		t.Errorf("%v: %+v, %s", err, input, rec.Request.Reason)
	}
	w.see("w1", true)
	w.Decide()
	if rec := w.Open(journal.LoadBalancer("w1")); rec.Cancelling == nil || rec.Cancelling.Reason != "the node was replaced by another of its name" {
		t.Errorf("%+v", rec.Cancelling)
	}
}

func TestANodeThatWasLeftAloneIsNotProved(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.open()
	rec := w.Open(journal.LoadBalancer("p1"))
	w.Play(rec, journal.StepWriteLoadBalancer+" p1", map[string]any{"left": "the node is gone"})
	w.End(rec, journal.OutcomeDone)
	w.state("p1", Behind)
}

func TestOfManyNodesAFewAreOpenAtATimeAndEachHasItsTurn(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	for i := range 99 {
		w.see(fmt.Sprint("w", i+100), true)
	}
	seen, ended := map[string]bool{}, 0
	for rounds := 0; len(seen) < 100; rounds++ {
		open := w.open()
		if len(open) > maxOpenUpdates || rounds > 100 {
			t.Fatalf("%d are open, %d were", len(open), len(seen))
		}
		for _, rec := range slices.Collect(maps.Values(w.S.Actions)) {
			ended++
			seen[rec.Subject.Name] = true
			// Some fail, and must not stand in the others' way.
			outcome := journal.OutcomeDone
			if ended%4 == 0 {
				outcome = journal.OutcomeCancelled
			}
			w.ends(rec.Subject.Name, outcome)
		}
		w.Pass(time.Second)
	}
}

func TestSwitchedOffItIsLeftAsItIs(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.see("p2", true)
	w.open()
	w.set(func(p *Policy) { p.Enabled = false })
	w.wants("update p2 10.0.0.1 10.0.0.2: enable_internal_load_balancer is off; the files on the node stay as they are")
	w.ends("p2", journal.OutcomeCancelled)
	w.Pass(time.Hour)
	w.wants()
}

func TestAnotherWayToWriteTheConfigurationIsBroughtToAll(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.wants("update p1 10.0.0.1")
}

func TestAnAdoptedActionIsNoProblemBeforeItsNodeIsSeen(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.open()
	rec := *w.Open(journal.LoadBalancer("p1"))
	other := newWorld(t)
	other.Write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
	other.wants("update p1 10.0.0.1")
	other.see("p1", true)
	other.wants("update p1 10.0.0.1")
	other.ends("p1", journal.OutcomeDone)
	other.state("p1", InStep)
	if got := Known(other.S)["p1"]; !reflect.DeepEqual(got, facts("p1", true, true)) {
		t.Errorf("known is %+v", got)
	}
}
