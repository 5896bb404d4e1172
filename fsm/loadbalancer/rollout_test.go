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

// nodes adds primaries p1 to p3 and workers from w10 on, all of them in step.
func (w *world) nodes(workers int) {
	for i := range 3 {
		w.see(fmt.Sprintf("p%d", i+1), true)
	}
	for i := range workers {
		w.see(fmt.Sprintf("w%d", 10+i), true)
	}
	w.settles()
}

func TestRolloutGrowsAfterThreeNodesAndChangesOnePrimaryAtATime(t *testing.T) {
	w := newWorld(t)
	w.nodes(12)
	w.set(func(p *Policy) { p.Layout = "l2" })
	want := []string{"w10", "w11", "w12", "w13 w14", "w15 w16 w17 w18", "p1 w19 w20 w21", "p2", "p3"}
	if got := w.rollout(); !slices.Equal(got, want) {
		t.Errorf("batches are %q, want %q", got, want)
	}
}

func TestRolloutWaitsForTheWholeBatch(t *testing.T) {
	w := newWorld(t)
	w.nodes(8)
	w.set(func(p *Policy) { p.Layout = "l2" })
	for _, name := range []string{"w10", "w11", "w12"} {
		w.open()
		w.ends(name, journal.OutcomeDone)
	}
	if open := w.open(); len(open) != 2 {
		t.Fatalf("open are %q", open)
	}
	w.ends("w13", journal.OutcomeDone)
	if open := w.open(); len(open) != 1 || !strings.HasPrefix(open[0], "update w14 ") {
		t.Errorf("open are %q", open)
	}
}

// stopped expects that the rollout is stopped: nothing else is begun, and the reason names the node.
func (w *world) stopped(node string, open ...string) {
	w.T.Helper()
	w.Pass(time.Hour)
	if got := w.opens(); !slices.Equal(got, open) {
		w.T.Errorf("open are %q, want %q", got, open)
	}
	for _, refusal := range w.S.Refusals {
		if refusal.Rule == RuleRollout && refusal.NeedsPerson && strings.Contains(refusal.Reason, node) {
			return
		}
	}
	w.T.Errorf("refused are %+v", w.S.Refusals)
}

// opens lets EKCO decide, and returns the names of the nodes with an open action.
func (w *world) opens() (names []string) {
	w.Decide()
	for _, rec := range w.S.Actions {
		names = append(names, rec.Subject.Name)
	}
	slices.Sort(names)
	return names
}

func TestRolloutStopsAtANodeThatIsLostDuringItsChange(t *testing.T) {
	for name, ends := range map[string]func(w *world){
		"until its change is verified": func(w *world) {
			w.see("w10", true)
			rec := w.Open(journal.LoadBalancer("w10"))
			w.Write(journal.Draft{Type: journal.TypeStepDone, Subject: rec.Subject, Action: rec.ID, Payload: journal.StepDone{
				Step: journal.StepWriteLoadBalancer + " w10", Attempt: 1,
				Outputs: w.JSON(map[string]any{"result": journal.LoadBalancerOnNode{Backend: "b", Image: image, Version: "0"}}),
			}})
			w.End(rec, journal.OutcomeDone)
		},
		"until it is cancelled": func(w *world) { w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled) },
		"until the node is purged": func(w *world) {
			w.gone("w10")
			w.Decide()
			w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nodes(4)
			w.set(func(p *Policy) { p.Layout = "l2" })
			w.begins("w10")
			w.see("w10", false)
			w.stopped("w10", "w10")
			if rec := w.Open(journal.LoadBalancer("w10")); rec.Cancelling != nil {
				t.Errorf("it is cancelled: %+v", rec.Cancelling)
			}
			ends(w)
			if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
				t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
			}
		})
	}
}

// begins starts the first step of the only open action, which is about that node.
func (w *world) begins(node string) {
	w.T.Helper()
	if open := w.opens(); !slices.Equal(open, []string{node}) {
		w.T.Fatalf("open are %q", open)
	}
	rec := w.Open(journal.LoadBalancer(node))
	step := journal.StepWriteLoadBalancer + " " + node
	for _, payload := range []journal.Payload{
		journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepWriteLoadBalancer}}}},
		journal.StepStarted{Step: step, Attempt: 1},
	} {
		w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
	}
}

func TestRolloutStopsAtAChangeThatDoesNotWork(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	rec := w.Open(journal.LoadBalancer("w10"))
	w.Play(rec, journal.StepWriteLoadBalancer+" w10", map[string]any{"result": journal.LoadBalancerOnNode{Backend: "b", Image: image, Version: "0", Config: true}})
	w.Write(journal.Draft{
		Type: journal.TypeActionStalled, Subject: rec.Subject, Action: rec.ID,
		Payload: journal.ActionStalled{Step: journal.StepReachLoadBalancer, Reason: "connection refused"},
	})
	w.stopped("w10", "w10")
	w.set(func(p *Policy) { p.Layout = "l3" }) // a person's change begins a new rollout
	w.Decide()
	if rec.Cancelling == nil {
		t.Error("it is not cancelled")
	}
}

// TestRolloutGoesOnPastOneNodeThatCannotBeChanged: of a second one, the change may be the cause.
func TestRolloutGoesOnPastOneNodeThatCannotBeChanged(t *testing.T) {
	w := newWorld(t)
	w.nodes(5)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.begins("w10")
	w.fails("w10", journal.StepWriteLoadBalancer)
	w.Pass(time.Hour)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("while it is tried again, open are %q", open)
	}
	w.stalls("w10", journal.StepWriteLoadBalancer)
	if open := w.opens(); !slices.Equal(open, []string{"w10", "w11"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
	w.ends("w11", journal.OutcomeDone)
	if open := w.opens(); !slices.Equal(open, []string{"w10", "w12"}) {
		t.Fatalf("open are %q; refused: %+v", open, w.S.Refusals)
	}
	w.stalls("w12", journal.StepCheckLoadBalancer) // which is no step of the plan here, so that the write is not begun
	w.stopped("w12", "w10", "w12")
}

func TestRolloutStopsAfterTwoNodesThatCannotBeChanged(t *testing.T) {
	w := newWorld(t)
	w.nodes(5)
	w.set(func(p *Policy) { p.Layout = "l2" })
	for _, node := range []string{"w10", "w11"} {
		w.opens()
		rec, step := w.Open(journal.LoadBalancer(node)), journal.StepWriteLoadBalancer+" "+node
		for _, payload := range []journal.Payload{
			journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: step, Does: journal.StepWriteLoadBalancer}}}},
			journal.StepStarted{Step: step, Attempt: 1},
		} {
			w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
		}
		w.fails(node, journal.StepWriteLoadBalancer)
		w.stalls(node, journal.StepWriteLoadBalancer)
	}
	w.stopped("w11", "w10", "w11")
}

func TestRolloutStopsAtAFailedCheck(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.stalls("w10", journal.StepCheckLoadBalancer)
	w.stopped("w10", "w10")
}

// TestRestartsStopAtANodeThatCannotBeChanged: the program may have restored a HAProxy that did not work.
func TestRestartsStopAtANodeThatCannotBeChanged(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.begins("w10")
	w.fails("w10", journal.StepWriteLoadBalancer)
	w.stalls("w10", journal.StepWriteLoadBalancer)
	w.stopped("w10", "w10")
}

func TestALostNodeIsNotBlamedOnAChangeThatHasNotBegun(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.see("w10", false)
	w.Pass(time.Minute)
	w.opens()
	if slices.ContainsFunc(w.S.Refusals, func(refusal fsm.Refusal) bool { return refusal.Rule == RuleRollout }) {
		t.Errorf("refused are %+v", w.S.Refusals)
	}
}

func TestNoLoadBalancerIsUpdatedWhileAChangeWritesThemAll(t *testing.T) {
	w := newWorld(t)
	w.nodes(2)
	input := journal.KubeconfigsInput{Server: "https://localhost:6444", Internal: true}
	admission, err := fsm.Admit(w.S, w.P, w.Now, fsm.Request{Kind: journal.ActionChangeLoadBalancer, Name: journal.Kubeconfigs.Name, Actor: "cli:a", Input: w.JSON(input)})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(admission.Events...)
	w.set(func(p *Policy) { p.Layout = "l2" })
	if open := w.opens(); !slices.Equal(open, []string{journal.Kubeconfigs.Name}) {
		t.Errorf("open are %q", open)
	}
	w.End(w.Open(journal.Kubeconfigs), journal.OutcomeDone)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("open are %q", open)
	}
}

// fails makes a step of the node's action fail.
func (w *world) fails(node, does string) {
	w.T.Helper()
	w.failsWith(node, journal.StepFailed{Step: does + " " + node, Attempt: 1, Error: "its disk is full"})
}

func (w *world) failsWith(node string, failed journal.StepFailed) {
	w.T.Helper()
	rec := w.Open(journal.LoadBalancer(node))
	w.Write(journal.Draft{Type: journal.TypeStepFailed, Subject: rec.Subject, Action: rec.ID, Payload: failed})
}

// TestRolloutStopsAtTheFirstTrialThatWasTakenBack, before its action stalls, until that is cancelled.
func TestRolloutStopsAtTheFirstTrialThatWasTakenBack(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.begins("w10")
	w.failsWith("w10", journal.StepFailed{Step: journal.StepWriteLoadBalancer + " w10", Attempt: 1, Error: "the former files were restored", Worse: true})
	if rec := w.Open(journal.LoadBalancer("w10")); rec.Stalled != nil {
		t.Errorf("it has stalled: %+v", rec.Stalled)
	}
	w.stopped("the load balancer of node w10 did not work after its change: the former files were restored", "w10")
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
	if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

// TestATrialIsForNodesThatAreChangedOneByOne: it keeps the pod of its task. Those are the first three, primaries, and
// what is in step.
func TestATrialIsForNodesThatAreChangedOneByOne(t *testing.T) {
	w := newWorld(t)
	w.nodes(9)
	trials := func() (all []string) {
		for len(w.open()) > 0 {
			for _, rec := range w.records() {
				if rec.Kind != journal.ActionUpdateLoadBalancer {
					continue
				}
				input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
				if err != nil {
					t.Fatal(err)
				}
				if input.Trial {
					all = append(all, rec.Subject.Name)
				}
				w.ends(rec.Subject.Name, journal.OutcomeDone)
			}
		}
		return all
	}
	w.set(func(p *Policy) { p.Layout = "l2" })
	if got, want := trials(), []string{"w10", "w11", "w12", "p1", "p2", "p3"}; !slices.Equal(got, want) {
		t.Errorf("trials of a rollout are on %q, want %q", got, want)
	}
	w.Pass(checkInterval)
	if got, want := trials(), []string{"p1", "p2", "p3", "w10", "w11", "w12", "w13", "w14", "w15", "w16", "w17", "w18"}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("trials of the daily look are on %q, want %q", got, want)
	}
}

// stalls makes the node's action stall at a step.
func (w *world) stalls(node, does string) {
	w.T.Helper()
	rec := w.Open(journal.LoadBalancer(node))
	w.Write(journal.Draft{
		Type: journal.TypeActionStalled, Subject: rec.Subject, Action: rec.ID,
		Payload: journal.ActionStalled{Step: does + " " + node, Reason: "its disk is full"},
	})
}

// TestANodeIsBlamedOnWhatAnEarlierAttemptWrote, and on an action that was cancelled after it began.
func TestANodeIsBlamedOnWhatAnEarlierAttemptWrote(t *testing.T) {
	for name, ends := range map[string]func(w *world, rec *journal.ActionRecord){
		"a second attempt finds it": func(w *world, rec *journal.ActionRecord) {
			step := journal.StepWriteLoadBalancer + " w10"
			w.fails("w10", journal.StepWriteLoadBalancer)
			for _, payload := range []journal.Payload{
				journal.StepStarted{Step: step, Attempt: 2},
				journal.StepDone{Step: step, Attempt: 2, Outputs: w.JSON(map[string]any{"result": journal.LoadBalancerOnNode{Backend: "b", Image: image, Version: "0"}})},
			} {
				w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
			}
			w.End(rec, journal.OutcomeDone)
		},
		"it is lost before the end": func(w *world, rec *journal.ActionRecord) {
			step := journal.StepWriteLoadBalancer + " w10"
			w.see("w10", false)
			payload := journal.StepDone{Step: step, Attempt: 1, Outputs: w.JSON(map[string]any{"result": journal.LoadBalancerOnNode{Backend: "b", Image: image, Version: "0", Config: true}})}
			w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: rec.Subject, Action: rec.ID, Payload: payload})
			w.End(rec, journal.OutcomeDone)
		},
		"it is cancelled": func(w *world, rec *journal.ActionRecord) { w.End(rec, journal.OutcomeCancelled) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nodes(4)
			w.set(func(p *Policy) { p.Layout = "l2" })
			w.begins("w10")
			ends(w, w.Open(journal.LoadBalancer("w10")))
			w.Pass(50 * time.Second)
			w.see("w10", false)
			w.stopped("w10")
		})
	}
}

// TestAFailedCheckLeavesWhatIsProved: a check changes nothing on the node.
func TestAFailedCheckLeavesWhatIsProved(t *testing.T) {
	w := newWorld(t)
	w.see("p1", true)
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.wants("restart p1 10.0.0.1")
	rec := w.Open(journal.LoadBalancer("p1"))
	w.Play(rec, journal.StepCheckLoadBalancer+" p1", map[string]any{})
	w.set(func(p *Policy) { p.Image = "haproxy:3" })
	w.Decide()
	if rec.Cancelling == nil {
		t.Fatal("the outdated action is not cancelled")
	}
	w.End(rec, journal.OutcomeCancelled)
	w.wants("restart p1 10.0.0.1")
	if input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer("p1")).Request); err != nil || input.Image != "haproxy:3" {
		t.Errorf("%v: %+v", err, input)
	}
}

func TestRolloutStopsAtANodeThatIsLostSoonAfterItsChange(t *testing.T) {
	for name, test := range map[string]struct {
		writes bool
		after  time.Duration
		stops  bool
	}{
		"after a minute":          {true, time.Minute, true},
		"after an hour":           {true, time.Hour, false},
		"and nothing was changed": {false, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nodes(4)
			w.writes = test.writes
			w.set(func(p *Policy) { p.Layout = "l2" })
			w.opens()
			w.ends("w10", journal.OutcomeDone)
			w.Pass(test.after)
			w.see("w10", false)
			if !test.stops {
				if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
					t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
				}
				return
			}
			w.stopped("w10")
			w.see("w10", true)
			w.state("w10", Updating)
			w.Pass(time.Hour)
			if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
				t.Errorf("before it is verified, open are %q; refused: %+v", open, w.S.Refusals)
			}
			w.ends("w10", journal.OutcomeDone)
			if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
				t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
			}
		})
	}
}

func TestRolloutGoesOnWithoutALostNodeThatIsPurgedOrGivenUp(t *testing.T) {
	for name, ends := range map[string]func(w *world){
		"it is purged": func(w *world) { w.gone("w10") },
		"it is paused": func(w *world) {
			w.paused("w10")
		},
		"it is back and paused": func(w *world) {
			w.see("w10", true)
			w.paused("w10")
		},
		"it is purged before it is verified": func(w *world) {
			w.see("w10", true)
			w.opens()
			w.gone("w10")
			w.Decide()
			w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
		},
		"its verification stalled and was cancelled": func(w *world) {
			w.see("w10", true)
			w.begins("w10")
			w.stalls("w10", journal.StepReachLoadBalancer)
			w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nodes(4)
			w.writes = true
			w.set(func(p *Policy) { p.Layout = "l2" })
			w.opens()
			w.ends("w10", journal.OutcomeDone)
			w.see("w10", false)
			w.stopped("w10")
			ends(w)
			if open := w.opens(); !slices.Contains(open, "w11") {
				t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
			}
		})
	}
}

// paused has a person pause a node.
func (w *world) paused(node string) {
	w.Write(journal.Draft{Type: journal.TypePauseSet, Subject: journal.NodeSubject(node, ""), Payload: journal.PauseSet{}})
}

// TestRolloutPastLostNodesGoesOneByOne, with a check and a trial on each: nothing shows yet that the change works.
func TestRolloutPastLostNodesGoesOneByOne(t *testing.T) {
	w := newWorld(t)
	w.nodes(12)
	w.writes = true
	w.set(func(p *Policy) { p.Layout = "l2" })
	for range 6 {
		open := w.opens()
		if len(open) != 1 {
			t.Fatalf("open are %q; refused: %+v", open, w.S.Refusals)
		}
		if input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer(open[0])).Request); err != nil || !input.Trial || input.CheckWith == "" {
			t.Errorf("%v: %s is changed with %+v", err, open[0], input)
		}
		w.ends(open[0], journal.OutcomeDone)
		w.see(open[0], false)
		w.stopped(open[0])
		w.paused(open[0])
	}
}

func TestAPausedNodeIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.paused("w10")
	w.see("w10", true)
	for _, next := range []string{"w11", "w12", "w13", "p1", "p2", "p3"} {
		if open := w.opens(); !slices.Equal(open, []string{next}) {
			t.Fatalf("open are %q, want %s; refused: %+v", open, next, w.S.Refusals)
		}
		w.ends(next, journal.OutcomeDone)
	}
	if open := w.opens(); len(open) > 0 {
		t.Errorf("open are %q", open)
	}
}

func TestTheReasonForALostNodeNamesTheCommandThatLeavesItOut(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.stopped("node w10 stopped being ready soon after its load balancer was changed; repair or purge it, or run \"ekco pause node/w10 --reason WHY\" to change the other nodes without it, one by one")
}

// TestALostNodeIsVerifiedAgainWhenItsVerificationEndsEarly, and so is one that was lost meanwhile.
func TestALostNodeIsVerifiedAgainWhenItsVerificationEndsEarly(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.writes = true
	w.set(func(p *Policy) { p.Layout = "l2" })
	w.opens()
	w.ends("w10", journal.OutcomeDone)
	w.see("w10", false)
	w.see("w10", true)
	w.opens()
	w.see("w10", false)
	w.Decide()
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
	w.stopped("w10")
	w.see("w10", true)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

// TestACancelledVerificationIsRepeated: only a stalled one shows why a person gives it up.
func TestACancelledVerificationIsRepeated(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.see("w10", true)
	w.begins("w10")
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
	w.Pass(time.Hour)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

func TestACancelledVerificationOfALostNodeDoesNotGiveItUp(t *testing.T) {
	w := newWorld(t)
	w.changedAndLost()
	w.see("w10", true)
	w.begins("w10")
	w.stalls("w10", journal.StepReachLoadBalancer)
	w.see("w10", false)
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
	w.stopped("w10")
}

// TestNothingIsRestartedBeforeALostNodeIsVerified, also while its verification waits to be repeated.
func TestNothingIsRestartedBeforeALostNodeIsVerified(t *testing.T) {
	w := newWorld(t)
	w.writes = true
	w.nodes(4)
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.see("w10", false)
	w.see("w10", true)
	w.begins("w10")
	w.End(w.Open(journal.LoadBalancer("w10")), journal.OutcomeCancelled)
	if open := w.opens(); len(open) > 0 {
		t.Errorf("open are %q", open)
	}
	w.Pass(time.Hour)
	if open := w.opens(); !slices.Equal(open, []string{"w10"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
	w.ends("w10", journal.OutcomeDone)
	if open := w.opens(); !slices.Equal(open, []string{"w11"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

func TestAPIServersThatRefuseAnonymousRequestsHaveAnotherProbe(t *testing.T) {
	w := newWorld(t)
	w.status = 401
	w.see("p1", true)
	w.settles()
	w.state("p1", InStep)
	if proved := of(w.S.Things[fsm.Key(journal.LoadBalancer("p1"))]).Proved; proved.Version != "0-tcp" {
		t.Errorf("the manifest has version %q", proved.Version)
	}
	w.status = 200 // another API server answers so, which is no reason to restart HAProxy
	w.Pass(checkInterval)
	w.has["p1"] = image
	w.settles()
	w.state("p1", InStep)
}

func TestTheFirstNodesAndEachRestartCheckWithHAProxy(t *testing.T) {
	w := newWorld(t)
	w.nodes(4)
	w.set(func(p *Policy) { p.Layout = "l2" })
	var checked []string
	for range 4 {
		w.opens()
		for _, rec := range w.S.Actions {
			input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request)
			if err != nil {
				t.Fatal(err)
			}
			checked = append(checked, rec.Subject.Name+" "+input.CheckWith)
			w.ends(rec.Subject.Name, journal.OutcomeDone)
		}
	}
	if want := []string{"w10 haproxy:1", "w11 haproxy:1", "w12 haproxy:1"}; !slices.Equal(checked[:3], want) || !slices.Contains(checked, "w13 ") {
		t.Errorf("checks are %q", checked)
	}
	w.settles()
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.opens()
	for _, rec := range w.S.Actions {
		if input, err := journal.InputOf[journal.LoadBalancerInput](rec.Request); err != nil || input.CheckWith != "haproxy:2" {
			t.Errorf("%v: %+v", err, input)
		}
	}
}

// As after a power failure: the files may have changed on each of them.
func TestRestartsOfAllHAProxiesAreVerifiedAsARollout(t *testing.T) {
	w := newWorld(t)
	names := []string{"p1", "p2", "p3"}
	for i := range 12 {
		names = append(names, fmt.Sprintf("w%d", 10+i))
	}
	for _, name := range names {
		w.started[name] = w.Now
	}
	w.nodes(12)
	w.Pass(time.Hour)
	for _, name := range names {
		w.started[name] = w.Now
		w.see(name, true)
	}
	w.open()
	if input, err := journal.InputOf[journal.LoadBalancerInput](w.Open(journal.LoadBalancer("w10")).Request); err != nil || input.CheckWith == "" || !input.Trial {
		t.Errorf("%v: %+v, want a check and a trial", err, input)
	}
	want := []string{"w10", "w11", "w12", "w13 w14", "w15 w16 w17 w18", "p1 w19 w20 w21", "p2", "p3"}
	if got := w.rollout(); !slices.Equal(got, want) {
		t.Errorf("batches are %q, want %q", got, want)
	}
}

func TestAHAProxyThatKeepsRestartingDelaysNoOtherNode(t *testing.T) {
	w := newWorld(t)
	w.started["w10"], w.started["p1"] = w.Now, w.Now
	w.see("w10", true)
	w.see("p1", true)
	w.settles()
	for range 24 { // until its checks are contested
		w.Pass(checkBackoff)
		w.started["w10"] = w.Now
		w.see("w10", true)
		w.settles()
	}
	w.Pass(checkBackoff)
	w.started["w10"], w.started["p1"] = w.Now, w.Now
	w.see("w10", true)
	w.see("p1", true)
	if open := w.opens(); !slices.Equal(open, []string{"p1"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

func TestAHAProxyThatIsNotDueDelaysNoOtherNode(t *testing.T) {
	w := newWorld(t)
	w.started["w10"], w.started["p1"] = w.Now, w.Now
	w.see("w10", true)
	w.see("p1", true)
	w.settles()
	w.Pass(checkBackoff)
	w.started["w10"] = w.Now
	w.see("w10", true)
	w.settles()
	w.Pass(time.Second)
	w.started["w10"], w.started["p1"] = w.Now, w.Now
	w.see("w10", true)
	w.see("p1", true)
	if open := w.opens(); !slices.Equal(open, []string{"p1"}) {
		t.Errorf("open are %q; refused: %+v", open, w.S.Refusals)
	}
}

// TestARestartedHAProxyGetsItsManifestAtOnce: what HAProxy runs with may be why it restarts.
func TestARestartedHAProxyGetsItsManifestAtOnce(t *testing.T) {
	w := newWorld(t)
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.settles()
	w.Pass(time.Hour)
	w.set(func(p *Policy) { p.Image = "haproxy:2" })
	w.started["p1"] = w.Now
	w.see("p1", true)
	w.wants("restart p1 10.0.0.1")
}
