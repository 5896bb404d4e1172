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
	w.unready("w1", "envoy-a", w.Now.Add(-time.Hour))
	seen := w.S.Seq
	if next := w.decided(); !next.Equal(w.Now.Add(allows)) {
		t.Fatalf("decides again at %s, want at %s", next, w.Now.Add(allows))
	}
	w.dueIn(allows, "w1")
	w.is("w1", Restarting)
	rec := w.open()
	if asking := w.last(journal.TypeActionRequested); asking.Cause != seen {
		t.Errorf("it was asked for because of event %d, want %d", asking.Cause, seen)
	}
	asked, err := journal.InputOf[journal.EnvoyPod](rec.Request)
	if err != nil || asked.String() != "projectcontour/envoy-a" || asked.UID != "uid-envoy-a" || !strings.HasPrefix(rec.ID, "restart-envoy-w1-envoy-") {
		t.Errorf("%v: asked for is %s about %+v", err, rec.ID, asked)
	}
	if want := "EKCO has seen pod projectcontour/envoy-a run without being ready since 2026-03-01T12:00:15Z; envoy_pods_not_ready_duration allows 5m0s"; rec.Request.Reason != want {
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
			w.unready("w1", "envoy-a", w.Now.Add(since))
			w.decide()
			w.dueIn(allows, "w1")
		})
	}
}

func TestAPodThatStartedAnewCountsAnew(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.pass(4 * time.Minute)
	w.unready("w1", "envoy-a", w.Now)
	w.decided()
	w.dueIn(allows, "w1")
}

func TestAPodThatIsReadyInBetweenIsLeftAlone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.pass(4 * time.Minute)
	w.gone("w1")
	w.decided("thing.transitioned w1: Unready to Ready")
	w.pass(time.Hour)
	w.decided()
	w.unready("w1", "envoy-a", w.Now)
	w.decided("thing.transitioned w1: Ready to Unready")
	w.dueIn(allows, "w1")
}

func TestAnEKCOThatStartsSettlesFirst(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.operator(journal.TypeOperatorStopped, journal.OperatorStopped{})
	w.pass(time.Hour)
	w.start()
	w.decided("policy.refused  by Settling")
	w.dueIn(w.P.Settling, "w1")
}

func TestAnAPIThatWasAwaySettlesFirst(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.operator(journal.TypeAPILost, journal.APILost{Error: "refused"})
	w.pass(time.Hour)
	w.decided("policy.refused  by APIUnreachable")
	w.operator(journal.TypeAPIRecovered, journal.APIRecovered{LostAt: w.Now})
	w.decided("policy.refused  by Settling")
	w.dueIn(w.P.Settling, "w1")
}

func TestWhatEKCOWasAwayForAnotherBootDoesNotCount(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
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
			w.unready("w1", "envoy-a", w.Now)
			w.decide()
			w.pass(time.Minute)
			w.Now = w.Now.Add(by)
			w.operator(journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(by)})
			w.decide()
			w.dueIn(allows-time.Minute, "w1")
		})
	}
}

func TestAPodOnALostNodeIsTheNodesBusinessAndCountsAnewWhenItIsBack(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	w.unready("w1", "envoy-a", w.Now)
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
	w.unready("w1", "envoy-a", w.Now)
	w.pass(allows)
	w.node("w1", true)
	w.decided("thing.transitioned w1: Unready to NodeLost")
}

func TestAPodOnANodeThatNobodyKnowsIsLeftAlone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w9", "envoy-a", w.Now)
	w.decided("thing.transitioned w9: Unready to NodeLost")
	w.pass(time.Hour)
	w.decided()
	w.node("w9", false)
	w.decided("thing.transitioned w9: NodeLost to Unready")
	w.Write(journal.Draft{
		Type: journal.TypeNodeGone, Subject: journal.NodeSubject("w9", "uid-w9"), Actor: "observer/node", Payload: journal.NodeGone{Reason: "deleted"},
	})
	w.decided("thing.transitioned w9: Unready to NodeLost")
}

func TestOfManyPodsOneIsReplacedInTenSecondsTheOldestFirst(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	for _, name := range []string{"w3", "w1", "w2"} {
		w.unready(name, "envoy-"+name, w.Now)
		w.decide()
		w.pass(time.Second)
	}
	w.pass(allows)
	var ended time.Time
	for i, name := range []string{"w3", "w1", "w2"} {
		if i > 0 {
			w.decide()
			w.pass(ended.Add(10*time.Second).Sub(w.Now) - time.Millisecond)
			if lines, next := w.decide(); len(w.S.Actions) > 0 || !next.Equal(w.Now.Add(time.Millisecond)) {
				t.Fatalf("before ten seconds are over: %q, next at %s", lines, next)
			}
			w.pass(time.Millisecond)
		}
		w.decide()
		if rec := w.open(); rec.Subject.Node != name {
			t.Fatalf("replaced is that of %s, want %s", rec.Subject.Node, name)
		}
		w.pass(time.Second)
		w.decide()
		w.replaced()
		ended = w.Now
	}
}

func TestAnEnvoyThatBecomesUnreadyAgainAndAgainIsNoEndlessFight(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 2 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.Now)
		w.decide()
		w.dueIn(allows, "w1")
		w.replaced()
		w.pass(30 * time.Second)
	}
	replaced := w.thing("w1").Contests["pod"]
	last := replaced.Last
	for i, pause := range []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour} {
		w.unready("w1", fmt.Sprint("envoy-again-", i), w.Now)
		w.decide()
		w.pass(allows)
		_, next := w.decide()
		if !next.Equal(last.Add(pause)) || len(w.S.Actions) > 0 {
			t.Fatalf("tries again %s after the last time, want %s", next.Sub(last), pause)
		}
		var reasons []string
		for _, refusal := range w.S.Refusals {
			if refusal.Rule == fsm.RuleContested {
				reasons = append(reasons, refusal.Reason)
			}
		}
		want := fmt.Sprintf("Envoy on w1 becomes unready again each time EKCO replaces its pod, the last time after %s of %s; "+
			"read \"kubectl --namespace projectcontour logs envoy-again-%d --container envoy\", and check that Contour's own pods are ready; EKCO tries again at %s",
			w.thing("w1").Contests["pod"].Action, fsm.Stamp(last), i, fsm.Stamp(next))
		if diff := cmp.Diff([]string{want}, reasons); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		w.pass(next.Sub(w.Now))
		w.decide()
		w.open()
		w.pass(time.Second)
		w.replaced()
		last = w.thing("w1").Contests["pod"].Last
		w.pass(30 * time.Second)
	}
}

func TestAnEnvoyThatHangsNowAndThenIsReplacedEachTime(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 5 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.Now)
		w.decide()
		w.dueIn(allows, "w1")
		w.replaced()
		w.pass(time.Hour)
	}
}

func TestARestartThatWasInVainBacksOffAndCountsAnew(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeAbandoned, journal.OutcomeSuperseded} {
		w := newWorld(t, "w1")
		w.unready("w1", "envoy-a", w.Now)
		w.decide()
		w.dueIn(allows, "w1")
		w.end(outcome)
		w.decide()
		w.is("w1", Unready)
		w.dueIn(allows, "w1")
		for range 3 {
			w.end(outcome)
			w.decide()
			w.pass(allows)
			w.decide()
		}
		w.dueIn(8*time.Minute-allows, "w1")
	}
}

func TestWhileEKCOIsPausedNoPodIsReplaced(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.Write(journal.Draft{Type: journal.TypePauseSet, Subject: journal.ClusterSubject, Actor: "cli:root", Payload: journal.PauseSet{Reason: "upgrade"}})
	w.pass(time.Hour)
	w.decided("policy.refused  by Paused")
}

func TestWhatIsNoEnvoyIsNotAdoptedAsOne(t *testing.T) {
	w := newWorld(t, "w1")
	for _, other := range []journal.Subject{{Kind: "Lamp", Name: "hall"}, {Kind: Kind}} {
		if (machine{}).Adopt(w.S, journal.Event{}, other) || w.S.Things[fsm.Key(other)] != nil {
			t.Errorf("adopted is %+v", other)
		}
	}
}

func TestRetentionKeepsWhatMovesTheTimeSinceWhenAPodIsUnready(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.Now = w.Now.Add(time.Hour)
	w.operator(journal.TypeClockJumped, journal.ClockJumped{By: journal.Duration(time.Hour)})
	w.node("w2", false) // the last event is always late enough
	needs, kept := w.S.Needs(), fsm.NewState(machines()...)
	for _, e := range w.Events {
		if needs.Keeps(e) {
			kept.Apply(e)
		}
	}
	if diff := cmp.Diff(w.thing("w1").Data, kept.Things[fsm.Key(subject("w1"))].Data); diff != "" {
		t.Errorf("from what is kept (-want +got):\n%s", diff)
	}
	w.gone("w1")
	if seq := w.S.Seq; w.S.Needs().ClockFrom != seq {
		t.Errorf("of a pod that is ready what moves the clock is kept from %d on, not from %d", w.S.Needs().ClockFrom, seq)
	}
}

// Its state is that of the last decision, and its pod may have become ready since.
func TestAPodThatIsReadyJustWhenItIsDueIsLeftAlone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.pass(allows)
	w.gone("w1")
	w.decided("thing.transitioned w1: Unready to Ready")
}

// TestAnAdoptedRestartIsNotAskedForTwice: the state in which its thing was is not yet that
// of one that is being restarted. One that stalled keeps no other of its kind back.
func TestAnAdoptedRestartIsNotAskedForTwice(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.pass(allows)
	rec := journal.ActionRecord{
		ID: "restart-envoy-w1-envoy-9-abcd", Kind: journal.ActionRestartEnvoy, Subject: subject("w1"), RequestedAt: w.Now,
		Request: journal.ActionRequested{Kind: journal.ActionRestartEnvoy, Input: w.thing("w1").Data.(*Envoy).Pod},
		Stalled: &journal.ActionStalled{Step: "delete-pod", Reason: "forbidden"},
	}
	w.Write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
	w.decided("thing.transitioned w1: Unready to Restarting")
}

// By its own clock each of them may be unready since any time.
func TestTheFirstIsThatWhichEKCOSawFirst(t *testing.T) {
	w := newWorld(t, "w1", "w2")
	w.unready("w2", "envoy-b", w.Now)
	w.pass(time.Second)
	w.unready("w1", "envoy-a", w.Now.Add(-time.Hour))
	w.decide()
	w.pass(allows)
	w.decide()
	if rec := w.open(); rec.Subject.Node != "w2" {
		t.Errorf("the first is on %s", rec.Subject.Node)
	}
}

func TestARestartThatSomebodyCancelledIsNotAskedForAgainUntilSomethingNewIsSeen(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	w.end(journal.OutcomeCancelled)
	w.decide()
	w.pass(48 * time.Hour)
	w.decided()
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
}

func TestADryRunShowsOnceWhatItWouldDo(t *testing.T) {
	w := newWorld(t, "w1")
	w.P.DryRun = true
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	if !w.open().Request.DryRun {
		t.Error("it is no dry run")
	}
	w.end(journal.OutcomeDryRun)
	w.decide()
	w.pass(time.Hour)
	w.decide()
	if len(w.S.Actions) > 0 {
		t.Error("it is asked for again in a dry run")
	}
	w.P.DryRun = false
	w.decide()
	if w.open().Request.DryRun {
		t.Error("in earnest it is a dry run")
	}
}

func TestNothingIsDoneWhileItIsSwitchedOff(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	off := w.P.With(Machine, Policy{After: allows})
	on := w.P
	w.P = off
	w.pass(time.Hour)
	w.decided()
	w.P = on
	w.decide()
	w.open()
	w.P = off
	w.decided("action.cancelling w1: restart_failed_envoy_pods is off")
}

func TestAnActionIsObsoleteWhenThePodIsNotAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"as it was":    {func(w *world) { w.unready("w1", "envoy-a", w.thing("w1").Data.(*Envoy).Pod.Since) }, ""},
		"ready":        {func(w *world) { w.gone("w1") }, "pod projectcontour/envoy-a is ready again, or is gone"},
		"another":      {func(w *world) { w.unready("w1", "envoy-b", w.Now) }, "pod projectcontour/envoy-a has since been ready, replaced or restarted"},
		"started anew": {func(w *world) { w.unready("w1", "envoy-a", w.Now) }, "pod projectcontour/envoy-a has since been ready, replaced or restarted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "w1")
			w.unready("w1", "envoy-a", w.Now)
			w.decide()
			w.dueIn(allows, "w1")
			test.change(w)
			rec := w.open()
			if got := (machine{}).Obsolete(w.thing("w1"), &rec); got != test.want {
				t.Errorf("obsolete because %q, want %q", got, test.want)
			}
			rec.Steps = map[string]journal.StepRecord{"delete-pod": {Open: true}}
			if got := (machine{}).Obsolete(w.thing("w1"), &rec); got != "" {
				t.Errorf("what has begun is obsolete because %q", got)
			}
		})
	}
}

func TestAnAdoptedActionIsNotHeldForLackOfAThing(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	rec := w.open()
	other := newWorld(t, "w1")
	other.Write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
	other.decide()
	other.is("w1", Restarting)
	if rec := other.open(); rec.Cancelling != nil {
		t.Errorf("it is cancelled: %s", rec.Cancelling.Reason)
	}
	for _, name := range kinds()[0].Rules {
		if got := fsm.CheckRule(other.S, other.P, other.Now, name, other.open()); got.Hold {
			t.Errorf("%s holds it: %s", name, got.Reason)
		}
	}
	other.end(journal.OutcomeAbandoned)
	other.decide()
	other.is("w1", Ready)
}

func TestWhatIsKnownIsWhatTheSourceBeginsWith(t *testing.T) {
	w := newWorld(t, "w1", "w2")
	w.unready("w1", "envoy-a", w.Now)
	w.unready("w2", "envoy-b", w.Now)
	w.gone("w2")
	known := Known(w.S)
	if pod, ok := known["w1/envoy"]; !ok || len(known) != 1 || pod.Name != "envoy-a" {
		t.Errorf("known are %+v", known)
	}
}

// TestAThingIsTheSameFromASnapshotAndFromWhatRetentionKeeps replays what the state says
// that it needs of the journal, as a start without snapshot does.
func TestAThingIsTheSameFromASnapshotAndFromWhatRetentionKeeps(t *testing.T) {
	w := newWorld(t, "w1")
	for i := range 3 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.Now)
		w.decide()
		if i < 2 {
			w.dueIn(allows, "w1")
			w.replaced()
		}
		w.pass(time.Minute)
	}
	snapshot, err := w.S.Snapshot()
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
	needs := w.S.Needs()
	kept := fsm.NewState(machines()...)
	for _, e := range w.Events {
		if needs.Keeps(e) || e.Type == journal.TypeOperatorStarted {
			kept.Apply(e)
		}
	}
	want, got := w.thing("w1"), kept.Things["Envoy/w1/envoy"]
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
		w.unready(name, "envoy-"+name, w.Now)
	}
	if lines, next := w.decide(); len(lines) != 0 || !next.Equal(w.Now.Add(allows)) {
		t.Errorf("decided %q, next at %s", lines, next)
	}
	w.pass(allows)
	lines, _ := w.decide()
	if len(w.S.Actions) != 1 || len(lines) != 3 {
		t.Errorf("%d actions after %q", len(w.S.Actions), lines)
	}
}

// act writes what a worker does about the open action of that id.
func (w *world) act(rec journal.ActionRecord, payloads ...journal.Payload) {
	w.T.Helper()
	for _, payload := range payloads {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator, Payload: payload})
	}
}

// stalls has the delete of the open restart fail for good.
func (w *world) stalls() journal.ActionRecord {
	w.T.Helper()
	rec := w.open()
	w.act(rec, journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: "delete-pod"}}}},
		journal.StepStarted{Step: "delete-pod", Attempt: 1}, journal.StepFailed{Step: "delete-pod", Attempt: 1, Error: "forbidden"},
		journal.ActionStalled{Step: "delete-pod", Reason: "forbidden"})
	return rec
}

func TestAStalledRestartKeepsNoOtherFromBeginning(t *testing.T) {
	w := newWorld(t, "w1", "w2")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	w.stalls()
	w.unready("w2", "envoy-b", w.Now)
	w.decide()
	w.dueIn(allows, "w2")
	if open := w.S.OpenActions(); len(open) != 2 {
		t.Errorf("%d actions are open", len(open))
	}
}

func TestAStalledRestartEndsWhenItsPodIsNotAsItWas(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"gone":         {func(w *world) { w.gone("w1") }, []string{"action.cancelling w1: pod projectcontour/envoy-a is ready again, or is gone"}},
		"started anew": {func(w *world) { w.unready("w1", "envoy-a", w.Now) }, []string{"action.cancelling w1: pod projectcontour/envoy-a has since been ready, replaced or restarted"}},
		"as it was":    {func(w *world) { w.pass(time.Hour) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "w1")
			w.unready("w1", "envoy-a", w.Now)
			w.decide()
			w.dueIn(allows, "w1")
			w.stalls()
			test.change(w)
			w.decided(test.want...)
		})
	}
}

// The journals of earlier versions call Envoy by its node alone. An observer that knows
// another name tells that the thing of the first is gone.
func TestEnvoyUnderItsFormerNameIsGoneAndItsPodReplacedOnce(t *testing.T) {
	former := journal.Subject{Kind: Kind, Name: "w1", Node: "w1"}
	for name, begun := range map[string]bool{"not asked for yet": false, "asked for": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "w1")
			w.observe(former, "envoy-a", w.Now)
			w.decided()
			if begun {
				w.dueIn(allows, "w1")
			}
			if known := Known(w.S); known["w1"].Name != "envoy-a" {
				t.Errorf("the source begins with %+v", known)
			}
			w.Write(journal.Draft{
				Type: journal.TypeThingGone, Subject: former, Actor: "observer/envoy", Payload: journal.ThingGone{Machine: Machine, Reason: "deleted"},
			})
			w.unready("w1", "envoy-a", w.Now)
			if begun {
				w.decided("action.cancelling w1: pod projectcontour/envoy-a is ready again, or is gone")
				w.end(journal.OutcomeAbandoned)
			}
			w.decided("thing.transitioned w1: " + map[bool]string{true: "Restarting", false: "Unready"}[begun] + " to Ready")
			w.dueIn(allows, "w1")
			if rec := w.open(); rec.Subject != subject("w1") {
				t.Errorf("the restart is about %+v", rec.Subject)
			}
		})
	}
}

func TestTwoEnvoysOnOneNodeKeepApart(t *testing.T) {
	w := newWorld(t, "w1")
	internal := journal.Subject{Kind: Kind, Name: "w1/envoy-internal", Node: "w1"}
	for i := range 2 {
		w.unready("w1", fmt.Sprint("envoy-", i), w.Now)
		w.decide()
		w.dueIn(allows, "w1")
		w.replaced()
		w.pass(30 * time.Second)
	}
	w.observe(internal, "envoy-internal-a", w.Now)
	w.decided()
	w.dueIn(allows, "w1")
	if rec := w.open(); rec.Subject != internal {
		t.Errorf("the restart is about %+v", rec.Subject)
	}
	w.is("w1", Ready)
}

// adopts has another EKCO's restart of Envoy on w1 go on here.
func (w *world) adopts() {
	w.T.Helper()
	rec := journal.ActionRecord{
		ID: "restart-envoy-w1-envoy-9-abcd", Kind: journal.ActionRestartEnvoy, Subject: subject("w1"), RequestedAt: w.Now,
		Request: journal.ActionRequested{Kind: journal.ActionRestartEnvoy, Input: w.thing("w1").Data.(*Envoy).Pod},
		Steps:   map[string]journal.StepRecord{"delete-pod": {Open: true}},
	}
	w.Write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: rec.Subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{JournalID: "another", Record: rec},
	})
}

// A watch tells that the pod is gone when the restart has ended, or not long after.
func TestWhatWasDeletedIsBeingReplacedUntilItIsSeenToBeGone(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	w.end(journal.OutcomeDone)
	w.decide()
	w.is("w1", Restarting)
	w.gone("w1")
	w.decided("thing.transitioned w1: Restarting to Ready")
}

// EKCO was killed after the delete, or had no answer to it for a while: the next pod is
// seen before the restart of the first has ended.
func TestThePodThatIsSeenBeforeTheRestartOfTheFirstHasEndedIsReplacedToo(t *testing.T) {
	w := newWorld(t, "w1")
	w.unready("w1", "envoy-a", w.Now)
	w.decide()
	w.dueIn(allows, "w1")
	w.unready("w1", "envoy-b", w.Now)
	w.end(journal.OutcomeDone)
	w.decide()
	w.is("w1", Unready)
	w.dueIn(allows, "w1")
}

func TestEachChangeIsToldAsOne(t *testing.T) {
	w := newWorld(t, "w1", "w2", "w3")
	w.unready("w1", "envoy-a", w.Now)
	w.decided()
	w.node("w1", true)
	w.decided("thing.transitioned w1: Unready to NodeLost")
	w.gone("w1")
	w.decided("thing.transitioned w1: NodeLost to Ready")
	if over := w.S.Finished; len(over) != 1 || over[0] != fsm.Key(subject("w1")) {
		t.Errorf("%q have come to an end", over)
	}
	w.adopts()
	w.decided("thing.transitioned w1: Ready to Restarting")
	w.unready("w1", "envoy-b", w.Now)
	w.decided()
	w.end(journal.OutcomeDone)
	w.decided("thing.transitioned w1: Restarting to NodeLost")
}
