package loadbalancer

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// reasons expects just these actions, for this reason.
func (w *world) reasons(reason string, names ...string) {
	w.T.Helper()
	w.Decide()
	var open []string
	for _, rec := range w.S.Actions {
		open = append(open, rec.Subject.Name)
		if rec.Request.Reason != reason {
			w.T.Errorf("%s is asked for since %s", rec.Subject.Name, rec.Request.Reason)
		}
	}
	if slices.Sort(open); !slices.Equal(open, names) {
		w.T.Fatalf("open are %q, want %q; refused: %+v", open, names, w.S.Refusals)
	}
}

// TestWhatIsInStepIsLookedAtOnceADayOneAfterTheOther: a check overwrites changes by hand.
func TestWhatIsInStepIsLookedAtOnceADayOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1", "w2"} {
		w.see(name, true)
	}
	w.settles()
	if a, b := w.S.Things[fsm.Key(journal.LoadBalancer("w1"))], w.S.Things[fsm.Key(journal.LoadBalancer("w2"))]; !checkedBefore(a, b) || checkedBefore(b, a) {
		t.Error("the order of two looks of the same time is not that of the names")
	}
	last := fsm.Stamp(w.Now)
	upcoming := fsm.Foresee(w.S, w.P, w.Now)
	if len(upcoming) != 1 || upcoming[0].Subject.Name != "p1" || !upcoming[0].At.Equal(w.Now.Add(24*time.Hour)) {
		t.Errorf("to come is %+v", upcoming)
	}
	w.Pass(24*time.Hour - time.Second)
	w.wants()
	w.Pass(time.Second)
	for _, name := range []string{"p1", "w1", "w2"} {
		w.reasons("daily check; the last one was at "+last, name)
		w.ends(name, journal.OutcomeDone)
	}
	w.wants()
	if details := w.S.Things[fsm.Key(journal.LoadBalancer("w1"))].Details(fsm.NewWorld(w.S, w.P, w.Now)); !slices.Equal(details, []string{
		"forwards to 10.0.0.1, with haproxy:1, last checked at " + fsm.Stamp(w.Now),
	}) {
		t.Errorf("details are %q", details)
	}
}

func TestAnUpdateThatEndedEarlyIsForeseen(t *testing.T) {
	w := newWorld(t)
	w.nodes(2)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeAbandoned)
	var foreseen []string
	for _, next := range fsm.Foresee(w.S, w.P, w.Now) {
		foreseen = append(foreseen, next.Subject.Name+" "+next.At.Sub(w.Now).String())
	}
	if !slices.Contains(foreseen, "w10 1m0s") {
		t.Errorf("to come are %q", foreseen)
	}
}

func TestNothingIsLookedAtWhileAnotherNodeIsChanged(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1"} {
		w.see(name, true)
	}
	w.settles()
	w.Pass(23 * time.Hour)
	w.see("w2", true)
	w.wants("update w2 10.0.0.1")
	w.Pass(2 * time.Hour)
	w.wants("update w2 10.0.0.1")
	w.ends("w2", journal.OutcomeDone)
	w.wants("update p1 10.0.0.1")
}

func TestAPausedNodeDoesNotDelayTheDailyLooksAtOthers(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1", "w2"} {
		w.see(name, true)
	}
	w.settles()
	last := fsm.Stamp(w.Now)
	paused := journal.Draft{Type: journal.TypePauseSet, Subject: journal.NodeSubject("p1", ""), Actor: "cli:root@a"}
	paused.Payload = journal.PauseSet{Reason: "a test", Until: w.Now.Add(25 * time.Hour)}
	w.Write(paused)
	w.Pass(24 * time.Hour)
	for _, name := range []string{"w1", "w2"} {
		w.reasons("daily check; the last one was at "+last, name)
		w.ends(name, journal.OutcomeDone)
	}
	w.wants()
	w.Pass(time.Hour)
	w.reasons("daily check; the last one was at "+last, "p1")
}

func TestAPausedNodeDoesNotHoldUpARollout(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"p1", "w1", "w2"} {
		w.see(name, true)
	}
	w.settles()
	paused := journal.Draft{Type: journal.TypePauseSet, Subject: journal.NodeSubject("w1", ""), Actor: "cli:root@a"}
	paused.Payload = journal.PauseSet{Reason: "a test", Until: w.Now.Add(time.Hour)}
	w.Write(paused)
	w.see("p2", true)
	w.wants("update w2 10.0.0.1 10.0.0.2")
}

func TestAHAProxyThatWasStartedAnewIsLookedAtAndOneThatEKCOStartedIsNot(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.started["p1"] = w.Now
	w.see("p1", true) // it runs, and was not looked at
	w.settles()
	w.see("p1", true)
	w.wants()
	w.state("p1", InStep)
	w.Pass(time.Hour)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.reasons("HAProxy was restarted on the node at "+fsm.Stamp(w.Now), "p1")
	w.settles()
	w.Pass(time.Second)
	delete(w.started, "p1")
	w.see("p1", true)
	w.wants()
	w.state("p1", Behind)
	w.Pass(checkBackoff)
	w.reasons("HAProxy no longer runs on the node", "p1")
}

func TestAClockThatWasSetBackHidesNoRestartAndPutsOffNoLook(t *testing.T) {
	w := newWorld(t)
	w.Pass(24 * time.Hour)
	w.see("p1", true)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.settles()
	w.Pass(-2 * time.Hour)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.reasons("HAProxy was restarted on the node at "+fsm.Stamp(w.Now), "p1")
	w.settles()
	w.wants()
	w.state("p1", InStep)
}

func TestAHAProxyThatIsStartedAnewAndAnewIsLookedAtLessAndLess(t *testing.T) {
	w := newWorld(t)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.settles()
	looks := 0
	for range 24 * 60 {
		w.Pass(time.Minute)
		w.started["p1"] = w.Now
		w.see("p1", true)
		looks += len(w.settles())
	}
	if looks < 4 || looks > 8 {
		t.Errorf("it was looked at %d times in a day", looks)
	}
	w.Decide()
	var said []string
	for _, refusal := range w.S.Refusals {
		said = append(said, refusal.Rule)
	}
	if diff := cmp.Diff([]string{fsm.RuleContested}, said); diff != "" {
		t.Error(diff)
	}
}

func TestSomebodyElseWhoChangesTheImageIsNotFought(t *testing.T) {
	w := newWorld(t)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.settles()
	w.has["p1"] = "haproxy:mine" // as the files are found each time
	for range 3 {
		w.Pass(checkBackoff)
		w.started["p1"] = w.Now
		w.see("p1", true)
		w.settles()
	}
	w.wants()
	w.Pass(24 * time.Hour) // when nobody starts it anew any more
	w.settles()
	w.Decide()
	for _, refusal := range w.S.Refusals {
		t.Errorf("refused is %+v", refusal)
	}
}

func TestWhatIsSaidOfWhatIsUndone(t *testing.T) {
	for key, want := range map[string][2]string{
		"started": {
			"HAProxy on node p1 restarts or ends each time after EKCO has checked its files",
			"check the log of pod haproxy-p1 in kube-system, and find out what else writes /etc/haproxy/haproxy.cfg",
		},
		"image": {"another program keeps changing the image of HAProxy on node p1 from haproxy:1", "find out which program changes it"},
	} {
		what, advice := machine{}.Disputed(&fsm.Thing{Subject: journal.LoadBalancer("p1")}, &journal.Change{
			Key: key, Field: "the image of HAProxy on node p1", From: "haproxy:mine", To: "haproxy:1",
		})
		if what != want[0] || advice != want[1] {
			t.Errorf("%s; %s", what, advice)
		}
	}
}
