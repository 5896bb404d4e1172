package loadbalancer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

var listSubject = journal.LoadBalancerList("kurl")

// seeList tells of the ConfigMap; without UID there is none.
func (w *world) seeList(uid, says string) {
	w.T.Helper()
	w.Observe(Machine, listSubject, journal.LoadBalancerListFacts{UID: uid, Sum: journal.SumOfLoadBalancers(says)})
}

// notes expects that the ConfigMap is to say that, and has it so.
func (w *world) notes(uid, says, made string) {
	w.T.Helper()
	w.Decide()
	rec := w.Open(listSubject)
	if rec == nil {
		w.T.Fatalf("nothing is to be noted; refused: %+v", w.S.Refusals)
	}
	input, err := journal.InputOf[journal.LoadBalancerListInput](rec.Request)
	if err != nil || input != (journal.LoadBalancerListInput{UID: uid, List: says}) {
		w.T.Fatalf("%v: %+v", err, input)
	}
	w.seeList(made, says)
	w.Play(rec, journal.StepNoteLoadBalancers, journal.LoadBalancerListFacts{UID: made, Sum: journal.SumOfLoadBalancers(says)})
	w.End(rec, journal.OutcomeDone)
	w.Decide()
	if state := w.S.Things[fsm.Key(listSubject)].State; state != InStep {
		w.T.Errorf("the list is %s", state)
	}
}

func TestTheListIsWrittenWhenAllThatAreReadyAreInStepAndWhoDeletesItHasAllWritten(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "what an earlier version wrote")
	w.see("p1", true)
	w.see("w1", true)
	w.see("w2", false)
	w.wants("update w1 10.0.0.1")
	w.ends("w1", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1")
	w.ends("p1", journal.OutcomeDone)
	const says = "p1 true 10.0.0.1,w1 false 10.0.0.1,w2 false 10.0.0.2"
	w.notes("u-1", says, "u-1")
	w.wants()
	w.seeList("", "")
	w.wants("update w1 10.0.0.1")
	if reason := w.Open(journal.LoadBalancer("w1")).Request.Reason; reason != "another program deleted or changed ConfigMap kurl/update-internallb: everything is written again" {
		t.Error(reason)
	}
	w.ends("w1", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1")
	w.ends("p1", journal.OutcomeDone)
	w.notes("", says, "u-2") // it is seen before the action has ended
	w.Pass(time.Hour)
	w.wants()
	w.seeList("u-3", "") // as an earlier version makes it, after somebody deleted it
	w.wants("update w1 10.0.0.1")
}

// TestListDoesNotWaitForAPausedNode: kURL's installer waits for the list.
func TestListDoesNotWaitForAPausedNode(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "")
	w.started["w2"] = w.Now
	for _, node := range []string{"p1", "w1", "w2"} {
		w.see(node, true)
	}
	w.wants("update w1 10.0.0.1")
	w.ends("w1", journal.OutcomeDone)
	w.wants("update w2 10.0.0.1")
	w.ends("w2", journal.OutcomeDone)
	w.Write(journal.Draft{Type: journal.TypePauseSet, Subject: journal.NodeSubject("w2", ""), Payload: journal.PauseSet{}})
	w.wants("update p1 10.0.0.1")
	w.Pass(time.Second)
	w.started["w2"] = w.Now // HAProxy was restarted, so that it is not in step
	w.see("w2", true)
	if w.Decide(); w.Open(listSubject) != nil {
		t.Error("it is written while a node is not in step that is not paused")
	}
	w.ends("p1", journal.OutcomeDone)
	w.notes("u-1", "p1 true 10.0.0.1,w1 false 10.0.0.1,w2 false 10.0.0.2", "u-1")
	w.Write(journal.Draft{Type: journal.TypePauseCleared, Subject: journal.NodeSubject("w2", ""), Payload: journal.PauseCleared{}})
	w.Pass(checkBackoff)
	w.wants("update w2 10.0.0.1")
}

func TestWhatWasAskedForBeforeTheListWasDeletedIsDoneAgain(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "")
	w.see("p1", true)
	w.open()
	w.seeList("", "")
	w.ends("p1", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1")
}

func TestTheListIsNotWrittenOnceANodeIsNotInStepOrTheListAnotherOne(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		why    string
	}{
		"a primary joins":         {func(w *world) { w.see("p2", true) }, "the load balancer of a node is out of date"},
		"a node is there":         {func(w *world) { w.see("w9", false) }, "the nodes have changed"},
		"somebody deletes it":     {func(w *world) { w.seeList("", "") }, "another program deleted or created it"},
		"it is switched off":      {func(w *world) { w.set(func(p *Policy) { p.Enabled = false }) }, "enable_internal_load_balancer is off; the files on the node stay as they are"},
		"it is nobody's business": {func(w *world) { w.Gone(Machine, listSubject, "so it is") }, "EKCO no longer manages it: so it is"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.seeList("u-1", "")
			w.see("p1", true)
			w.open()
			w.ends("p1", journal.OutcomeDone)
			w.Decide()
			test.change(w)
			w.Decide()
			if rec := w.Open(listSubject); rec == nil || rec.Cancelling == nil || rec.Cancelling.Reason != test.why {
				t.Errorf("%+v", rec)
			}
		})
	}
}

func TestSomebodyElseWhoWritesTheListIsNotFought(t *testing.T) {
	w := newWorld(t)
	w.seeList("u-1", "")
	w.see("p1", true)
	w.open()
	w.ends("p1", journal.OutcomeDone)
	for range 2 {
		w.notes("u-1", "p1 true 10.0.0.1", "u-1")
		w.Pass(time.Minute)
		w.seeList("u-1", "mine")
		w.wants("update p1 10.0.0.1") // another EKCO may have written it
		w.ends("p1", journal.OutcomeDone)
	}
	w.wants()
	refused := slices.Collect(func(yield func(string) bool) {
		for _, refusal := range w.S.Refusals {
			yield(refusal.Rule + ": " + refusal.Reason)
		}
	})
	if len(refused) != 1 || !strings.HasPrefix(refused[0], "Contested: another program keeps changing the content of ConfigMap kurl/update-internallb") {
		t.Errorf("refused is %q", refused)
	}
}

func TestWhatIsKnownOfTheList(t *testing.T) {
	w := newWorld(t)
	if got := KnownLists(w.S); len(got) != 0 {
		t.Error(got)
	}
	w.see("p1", true)
	w.seeList("u-1", "")
	if got := KnownLists(w.S); len(got) != 1 || got[listSubject.Name].UID != "u-1" || len(Known(w.S)) != 1 {
		t.Error(got)
	}
	w.Gone(Machine, listSubject, "it is switched off")
	w.state("p1", Updating)
	if state := w.S.Things[fsm.Key(listSubject)].State; state != Removed || len(KnownLists(w.S)) != 0 {
		t.Errorf("it is %s", state)
	}
}
