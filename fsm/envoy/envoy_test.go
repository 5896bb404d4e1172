package envoy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestAPodIsReplacedWhenItIsUnreadyForLongEnough(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	if next := w.decided(); !next.Equal(w.now.Add(allows)) {
		t.Fatalf("decides again at %s, want at %s", next, w.now.Add(allows))
	}
	w.dueIn(allows, "w1")
	w.is("w1", Restarting)
	rec := w.open()
	asked, err := journal.InputOf[journal.EnvoyPod](rec.Request)
	if err != nil || asked.String() != "projectcontour/envoy-a" || asked.UID != "uid-envoy-a" || !strings.HasPrefix(rec.ID, "restart-envoy-w1-") {
		t.Errorf("%v: asked for is %s about %+v", err, rec.ID, asked)
	}
	if want := "pod projectcontour/envoy-a runs and is not ready, as EKCO sees since 2026-03-01T12:00:15Z; envoy_pods_not_ready_duration allows 5m0s"; rec.Request.Reason != want {
		t.Errorf("the reason is %q", rec.Request.Reason)
	}
	w.replaced()
	w.is("w1", Ready)
	w.pass(time.Hour)
	w.decided()
}

// By its own clock a pod may be unready for days.
func TestHowLongAPodIsUnreadyCountsFromWhenEKCOSawIt(t *testing.T) {
	for name, since := range map[string]time.Duration{"days ago": -48 * time.Hour, "in the future": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "w1")
			w.unready("w1", "envoy-a", w.now.Add(since))
			w.decide()
			w.dueIn(allows, "w1")
		})
	}
}

func TestAPodThatStartedAnewCountsAnew(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.pass(4 * time.Minute)
	w.unready("w1", "envoy-a", w.now)
	w.decided()
	w.dueIn(allows, "w1")
}

func TestAPodThatIsReadyInBetweenIsLeftAlone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.pass(4 * time.Minute)
	w.gone("w1")
	w.decided("thing.transitioned w1: Unready to Ready")
	w.pass(time.Hour)
	w.decided()
	w.unready("w1", "envoy-a", w.now)
	w.decided("thing.transitioned w1: Ready to Unready")
	w.dueIn(allows, "w1")
}

func TestAnEKCOThatStartsSettlesFirst(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	w.pass(time.Hour)
	w.start()
	w.decided("policy.refused  by Settling")
	w.dueIn(w.p.Settling, "w1")
}

func TestAnAPIThatWasAwaySettlesFirst(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.operator(journal.TypeAPILost, journal.APILost{Error: "refused"})
	w.pass(time.Hour)
	w.decided("policy.refused  by APIUnreachable")
	w.operator(journal.TypeAPIRecovered, journal.APIRecovered{LostAt: w.now})
	w.decided("policy.refused  by Settling")
	w.dueIn(w.p.Settling, "w1")
}

func TestWhatEKCOWasAwayForAnotherBootDoesNotCount(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.pass(time.Minute)
	w.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	w.pass(time.Hour)
	w.boot, w.up = "boot-2", time.Minute
	w.start()
	w.decide()
	w.dueIn(allows-time.Minute, "w1")
}

func TestAClockThatJumpsMakesNoPodOlderOrYounger(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			w := newWorld(t, "w1")
			w.unready("w1", "envoy-a", w.now)
			w.decide()
			w.pass(time.Minute)
			w.now = w.now.Add(by)
			w.operator(journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(by)})
			w.decide()
			w.dueIn(allows-time.Minute, "w1")
		})
	}
}

func TestAPodOnALostNodeIsTheNodesBusinessAndCountsAnewWhenItIsBack(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.pass(time.Minute)
	w.node("w1", true)
	w.decided("thing.transitioned w1: Unready to NodeLost")
	w.pass(time.Hour)
	w.decided()
	w.node("w1", false)
	w.decided("thing.transitioned w1: NodeLost to Unready")
	w.dueIn(allows, "w1")
}

func TestAPodOnANodeThatIsLostAndBackBetweenTwoDecisionsIsLeftAloneUntilThen(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	w.unready("w1", "envoy-a", w.now)
	w.pass(allows)
	w.node("w1", true)
	w.decided("thing.transitioned w1: Unready to NodeLost")
}

func TestAPodOnANodeThatNobodyKnowsIsLeftAlone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w9", "envoy-a", w.now)
	w.decided("thing.transitioned w9: Unready to NodeLost")
	w.pass(time.Hour)
	w.decided()
	w.node("w9", false)
	w.decided("thing.transitioned w9: NodeLost to Unready")
	w.write(journal.Draft{
		Type: journal.TypeNodeGone, Subject: journal.NodeSubject("w9", "uid-w9"), Actor: "observer/node", Payload: journal.NodeGone{Reason: "deleted"},
	})
	w.decided("thing.transitioned w9: Unready to NodeLost")
}

func TestOfManyPodsOneIsReplacedInTenSecondsTheOldestFirst(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	for _, name := range []string{"w3", "w1", "w2"} {
		w.unready(name, "envoy-"+name, w.now)
		w.decide()
		w.pass(time.Second)
	}
	w.pass(allows)
	var ended time.Time
	for i, name := range []string{"w3", "w1", "w2"} {
		if i > 0 {
			w.decide()
			w.pass(ended.Add(10*time.Second).Sub(w.now) - time.Millisecond)
			if lines, next := w.decide(); len(w.s.Actions) > 0 || !next.Equal(w.now.Add(time.Millisecond)) {
				t.Fatalf("before ten seconds are over: %q, next at %s", lines, next)
			}
			w.pass(time.Millisecond)
		}
		w.decide()
		if rec := w.open(); rec.Subject.Name != name {
			t.Fatalf("replaced is that of %s, want %s", rec.Subject.Name, name)
		}
		w.pass(time.Second)
		w.decide()
		w.replaced()
		ended = w.now
	}
}

func TestAnEnvoyThatBecomesUnreadyAgainAndAgainIsNoEndlessFight(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 2 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.now)
		w.decide()
		w.dueIn(allows, "w1")
		w.replaced()
		w.pass(30 * time.Second)
	}
	replaced := w.s.Things["Envoy/w1"].Contests["pod"]
	last := replaced.Last
	for i, pause := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
		w.unready("w1", fmt.Sprint("envoy-again-", i), w.now)
		w.decide()
		w.pass(allows)
		_, next := w.decide()
		if !next.Equal(last.Add(pause)) || len(w.s.Actions) > 0 {
			t.Fatalf("tries again %s after the last time, want %s", next.Sub(last), pause)
		}
		var reasons []string
		for _, refusal := range w.s.Refusals {
			if refusal.Rule == fsm.RuleContested {
				reasons = append(reasons, refusal.Reason)
			}
		}
		want := fmt.Sprintf("Envoy on w1 becomes unready again each time that EKCO replaces its pod, the last time after %s of %s; "+
			"look at \"kubectl --namespace projectcontour logs envoy-again-%d --container envoy\", and whether Contour's own pods are ready; EKCO tries again at %s",
			w.s.Things["Envoy/w1"].Contests["pod"].Action, fsm.Stamp(last), i, fsm.Stamp(next))
		if diff := cmp.Diff([]string{want}, reasons); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		w.pass(next.Sub(w.now))
		w.decide()
		w.open()
		w.pass(time.Second)
		w.replaced()
		last = w.s.Things["Envoy/w1"].Contests["pod"].Last
		w.pass(30 * time.Second)
	}
}

func TestAnEnvoyThatHangsNowAndThenIsReplacedEachTime(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 5 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.now)
		w.decide()
		w.dueIn(allows, "w1")
		w.replaced()
		w.pass(time.Hour)
	}
}

func TestARestartThatWasInVainBacksOffAndCountsAnew(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.dueIn(allows, "w1")
	w.end(journal.OutcomeAbandoned)
	w.decided("thing.transitioned w1: Restarting to Unready")
	w.dueIn(allows, "w1")
}

func TestARestartThatSomebodyCancelledIsNotAskedForAgainUntilSomethingNewIsSeen(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.dueIn(allows, "w1")
	w.end(journal.OutcomeCancelled)
	w.decide()
	w.pass(48 * time.Hour)
	w.decided()
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.dueIn(allows, "w1")
}

func TestADryRunShowsOnceWhatItWouldDo(t *testing.T) {
	w := newWorld(t, "w1")
	w.p.DryRun = true
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.dueIn(allows, "w1")
	if !w.open().Request.DryRun {
		t.Error("it is no dry run")
	}
	w.end(journal.OutcomeDryRun)
	w.decide()
	w.pass(time.Hour)
	w.decide()
	if len(w.s.Actions) > 0 {
		t.Error("it is asked for again in a dry run")
	}
	w.p.DryRun = false
	w.decide()
	if w.open().Request.DryRun {
		t.Error("in earnest it is a dry run")
	}
}

func TestNothingIsDoneWhileItIsSwitchedOff(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	off := w.p.With(Machine, Policy{After: allows})
	on := w.p
	w.p = off
	w.pass(time.Hour)
	w.decided()
	w.p = on
	w.decide()
	w.open()
	w.p = off
	w.decided("action.cancelling w1: restart_failed_envoy_pods is off")
}

func TestAnActionIsObsoleteWhenThePodIsNotAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"as it was":    {func(w *world) { w.unready("w1", "envoy-a", w.s.Things["Envoy/w1"].Data.(*Envoy).Pod.Since) }, ""},
		"ready":        {func(w *world) { w.gone("w1") }, "pod projectcontour/envoy-a is ready again, or is gone"},
		"another":      {func(w *world) { w.unready("w1", "envoy-b", w.now) }, "pod projectcontour/envoy-a was ready, replaced or started anew meanwhile"},
		"started anew": {func(w *world) { w.unready("w1", "envoy-a", w.now) }, "pod projectcontour/envoy-a was ready, replaced or started anew meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "w1")
			w.unready("w1", "envoy-a", w.now)
			w.decide()
			w.dueIn(allows, "w1")
			test.change(w)
			rec := w.open()
			if got := (machine{}).Obsolete(w.s.Things["Envoy/w1"], &rec); got != test.want {
				t.Errorf("obsolete because %q, want %q", got, test.want)
			}
			rec.Steps = map[string]journal.StepRecord{"delete-pod": {Open: true}}
			if got := (machine{}).Obsolete(w.s.Things["Envoy/w1"], &rec); got != "" {
				t.Errorf("what has begun is obsolete because %q", got)
			}
		})
	}
}

func TestAnAdoptedActionIsNotHeldForLackOfAThing(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.now)
	w.decide()
	w.dueIn(allows, "w1")
	rec := w.open()
	other := newWorld(t, "w1")
	other.write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
	other.decide()
	other.is("w1", Restarting)
	for _, name := range kinds()[0].Rules {
		if got := fsm.CheckRule(other.s, other.p, other.now, name, other.open()); got.Hold {
			t.Errorf("%s holds it: %s", name, got.Reason)
		}
	}
	other.end(journal.OutcomeAbandoned)
	other.decide()
	other.is("w1", Ready)
}

func TestWhatIsKnownIsWhatTheSourceBeginsWith(t *testing.T) {
	w := newWorld(t, "w1", "w2")
	w.unready("w1", "envoy-a", w.now)
	w.unready("w2", "envoy-b", w.now)
	w.gone("w2")
	known := Known(w.s)
	if pod, ok := known["w1"]; !ok || len(known) != 1 || pod.Name != "envoy-a" {
		t.Errorf("known are %+v", known)
	}
}

// TestAThingIsTheSameFromASnapshotAndFromWhatRetentionKeeps replays what the state says
// that it needs of the journal, as a start without snapshot does.
func TestAThingIsTheSameFromASnapshotAndFromWhatRetentionKeeps(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 3 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.now)
		w.decide()
		if i < 2 {
			w.dueIn(allows, "w1")
			w.replaced()
		}
		w.pass(time.Minute)
	}
	snapshot, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := fsm.LoadState(snapshot, machines()...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := loaded.Snapshot()
	if diff := cmp.Diff(string(snapshot.State), string(again.State)); err != nil || diff != "" {
		t.Errorf("%v: from a snapshot (-want +got):\n%s", err, diff)
	}
	needs := w.s.Needs()
	kept := fsm.NewState(machines()...)
	for _, e := range w.events {
		if needs.Keeps(e) || e.Type == journal.TypeOperatorStarted {
			kept.Apply(e)
		}
	}
	want, got := w.s.Things["Envoy/w1"], kept.Things["Envoy/w1"]
	if diff := cmp.Diff(want.Data, got.Data); diff != "" {
		t.Errorf("from what is kept (-want +got):\n%s", diff)
	}
	// What was before the last time counts for an hour only, in which nothing leaves a journal.
	if last := got.Contests["pod"]; last == nil || last.Action != want.Contests["pod"].Action || !last.Last.Equal(want.Contests["pod"].Last) {
		t.Errorf("of the contest is kept %+v, want %+v", last, want.Contests["pod"])
	}
}

func TestAThousandEnvoysCostOneTimer(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 1000 {
		name := fmt.Sprintf("n%04d", i)
		w.node(name, false)
		w.unready(name, "envoy-"+name, w.now)
	}
	if lines, next := w.decide(); len(lines) != 0 || !next.Equal(w.now.Add(allows)) {
		t.Errorf("decided %q, next at %s", lines, next)
	}
	w.pass(allows)
	lines, _ := w.decide()
	if len(w.s.Actions) != 1 || len(lines) != 3 {
		t.Errorf("%d actions after %q", len(w.s.Actions), lines)
	}
}
