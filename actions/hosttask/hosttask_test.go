package hosttask_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	shape "github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

func TestATaskIsRunOnEachNodeAndItsOutcomeIsOnRecord(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.Set("a", hosttasksim.Program{Lines: []string{"primed", "painted"}})
		e.Taint("b", journal.TaintUnschedulable) // which keeps nobody from working there
		e.ask()
		e.RunToEnd(e.config())
		want := `a {"node":"a"} (1 pods); b {"node":"b"} (1 pods); 0 left`
		if got := e.outcomes(); got != want || e.LastLine() != "ended done" {
			t.Errorf("it is %s, want %s; %q", got, want, e.Story())
		}
		for _, said := range []string{"host task says: primed", "host task says: painted"} {
			if n := strings.Count(e.Logged(), said); n != 1 {
				t.Errorf("%q was passed on %d times", said, n)
			}
		}
		if strings.Contains(e.Logged(), "ekco-outcome") {
			t.Error("the outcome was passed on as a line of its log")
		}
		e.clean()
	})
}

func scene(prepare func(e *estate)) func(w *actionstest.World) actionstest.Stage {
	return func(w *actionstest.World) actionstest.Stage {
		e := newEstate(w, "a", "b")
		prepare(e)
		e.ask()
		return actionstest.Stage{Kinds: e.kinds, Outcome: func() string {
			e.clean()
			return e.outcomes()
		}}
	}
}

// A second action runs the programs a second time, as it should: so nothing is done again
// here.
func TestCrashMatrix(t *testing.T) {
	scenes := func(uncounted bool) actionstest.Scenes {
		return actionstest.Scenes{
			"done": {Set: scene(func(e *estate) { e.uncounted = uncounted }), Points: 18, Once: true},
			"missing for good": {Set: scene(func(e *estate) {
				e.partial, e.uncounted = true, uncounted
				e.Set("b", hosttasksim.Program{Waits: "ImagePullBackOff"})
			}), Points: 20, Once: true},
		}
	}
	t.Run("killed at any point", scenes(false).KilledAtAnyPoint)
	t.Run("killed twice", scenes(false).KilledTwice)
	// The mirror need not know yet that a task has run whose pod is gone already: it runs
	// again then.
	t.Run("finished elsewhere from the mirror", scenes(true).FinishedElsewhere)
	t.Run("resumed from an older journal", scenes(true).ResumedFromOlderJournal)
}

// TestATaskThatFailsIsTakenAwayAndTriedAgain: whatever is wrong with it.
func TestATaskThatFailsIsTakenAwayAndTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		program hosttasksim.Program
		says    string
	}{
		"its image is missing":     {hosttasksim.Program{Waits: "ImagePullBackOff"}, "cannot start on node a: ImagePullBackOff"},
		"it never starts":          {hosttasksim.Program{Start: time.Hour}, "has not started on node a within 30s"},
		"it runs for too long":     {hosttasksim.Program{Hangs: true}, "DeadlineExceeded"},
		"it dies":                  {hosttasksim.Program{Dies: true}, "its pod failed: by the simulation"},
		"it says that it failed":   {hosttasksim.Program{Failed: "the paint is dry"}, "the paint is dry"},
		"it says nothing of it":    {hosttasksim.Program{Silent: true, Lines: []string{"bye"}}, `the last line of its log is \"bye\"`},
		"it cannot be made to run": {hosttasksim.Program{Waits: "CreateContainerConfigError"}, "CreateContainerConfigError"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a", "b")
				e.Set("a", test.program)
				e.ask()
				r := e.Start(e.config())
				e.Pass(4 * time.Minute)
				failed := e.Record().Steps["paint a"]
				if failed.Failures == 0 || !strings.Contains(strings.ReplaceAll(failed.LastError, `"`, `\"`), test.says) {
					t.Errorf("it failed %d times with %q, want %q", failed.Failures, failed.LastError, test.says)
				}
				if !e.Record().Steps["remove-host-task of paint b"].Done() {
					t.Error("the other node had to wait")
				}
				e.Set("a", hosttasksim.Program{})
				r.End()
				if e.LastLine() != "ended done" {
					t.Errorf("it ended with %q", e.LastLine())
				}
				e.clean()
			})
		})
	}
}

func TestWhatFailsAgainAndAgainLeavesNothingBehind(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		e.Set("a", hosttasksim.Program{Waits: "ErrImagePull"})
		e.ask()
		r := e.Start(e.config())
		e.Pass(time.Hour)
		if e.Record().Stalled == nil {
			t.Errorf("it has not stalled: %q", e.Story())
		}
		r.Halt()
		e.clean()
	})
}

func TestANodeThatIsAwayIsWaitedForAndHoldsUpNoOther(t *testing.T) {
	for name, taint := range map[string]string{"not ready": journal.TaintNotReady, "unreachable": journal.TaintUnreachable} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a", "b")
				e.Taint("a", taint)
				e.ask()
				r := e.Start(e.config())
				e.Pass(time.Minute)
				if !e.Record().Steps["remove-host-task of paint b"].Done() || e.Made("a") != 0 {
					t.Errorf("after a minute: %q", e.Story())
				}
				hold := e.Record().Holds["paint a"]
				if hold.Preflight != actions.HoldItems || !strings.HasPrefix(hold.Reason, "node a ") {
					t.Errorf("it is held by %+v", hold)
				}
				e.Pass(24 * time.Hour)
				if failures := e.Record().Steps["paint a"].Failures; failures > 0 || len(e.Events()) > 60 {
					t.Errorf("a day later: %d failures, %d events", failures, len(e.Events()))
				}
				e.Taint("a", "")
				r.End()
				e.clean()
			})
		})
	}
}

func TestANodeThatIsLostUnderWayGivesItsTaskUp(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.Set("a", hosttasksim.Program{Run: time.Minute})
		e.ask()
		r := e.Start(e.config())
		e.Pass(10 * time.Second)
		e.Taint("a", journal.TaintUnreachable)
		e.Pass(30 * time.Second)
		if pods := e.Pods(); len(pods) > 0 {
			t.Errorf("30 s later there is %q", pods)
		}
		e.Pass(time.Hour)
		if hold := e.Record().Holds["paint a"]; hold.Reason != "node a does not answer" {
			t.Errorf("it is held by %+v; %q", hold, e.Story())
		}
		e.Taint("a", "")
		r.End()
		if e.Made("a") != 2 || e.LastLine() != "ended done" {
			t.Errorf("%d pods, %q", e.Made("a"), e.LastLine())
		}
		e.clean()
	})
}

func TestANodeThatIsReplacedOrGoneIsLeftAlone(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.Replace("a")
		e.Delete("b")
		e.ask()
		e.RunToEnd(e.config())
		if e.Made("a")+e.Made("b") != 0 || e.LastLine() != "ended done node a was replaced by another of its name; node b is no longer part of the cluster" {
			t.Errorf("%d pods, %q", e.Made("a"), e.LastLine())
		}
	})
}

func TestAPodOfTheSameNameIsLeftAloneAndHoldsThatNode(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		foreign := e.podOf("a")
		uid := e.Put(foreign, `{"spec":{"nodeName":"a"},"status":{"phase":"Running"}}`)
		e.ask()
		r := e.Start(e.config())
		e.Pass(10 * time.Minute)
		hold := e.Record().Holds["paint a"]
		if !strings.Contains(hold.Reason, foreign.Name+" has the name of EKCO's pod") || e.Record().Steps["paint a"].Failures > 0 {
			t.Errorf("it is held by %+v", hold)
		}
		if now := e.Object(foreign)["metadata"].(map[string]any)["uid"]; now != uid {
			t.Errorf("it was touched: %v", now)
		}
		e.Remove(foreign)
		r.End()
		e.clean()
	})
}

func TestWhatTheAPIRefusesIsAFailureThatSaysWhatLacks(t *testing.T) {
	for verb, says := range map[string]string{
		"get pods":     "lacks the permission to get pods",
		"create pods":  "lacks the permission to create pods",
		"list pods":    "lacks the permission to list pods",
		"get pods/log": "lacks the permission to get pods/log",
	} {
		t.Run(verb, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a")
				e.Forbid(verb)
				e.ask()
				r := e.Start(e.config())
				e.Pass(10 * time.Second)
				if failed := e.Record().Steps["paint a"]; failed.Failures == 0 || !strings.Contains(failed.LastError, says) {
					t.Errorf("it failed with %q, want %q", failed.LastError, says)
				}
				e.Allow(verb)
				r.End()
				e.clean()
			})
		})
	}
}

func TestWhatCannotBeHadOfANodeIsAnOutcomeWhereThatIsEnough(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "away", "dead", "fine", "slow")
		e.partial, e.limit = true, 20*time.Second
		e.Taint("away", journal.TaintNotReady)
		e.Set("dead", hosttasksim.Program{Waits: "ErrImagePull"})
		e.Set("slow", hosttasksim.Program{Hangs: true})
		e.ask()
		if took := e.Start(e.config()).End(); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		want := `away node away is not ready (0 pods); ` +
			`dead its pod cannot start on node dead: ErrImagePull: by the simulation (1 pods); ` +
			`fine {"node":"fine"} (1 pods); slow its pod failed: DeadlineExceeded: by the simulation (1 pods); 0 left`
		const ended = "ended done node away is not ready; its pod cannot start on node dead: ErrImagePull: by the simulation; " +
			"its pod failed: DeadlineExceeded: by the simulation"
		if got := e.outcomes(); got != want || e.LastLine() != ended {
			t.Errorf("it is\n%s, want\n%s; %q, want %q", got, want, e.LastLine(), ended)
		}
		mayHaveRun := map[string]bool{"paint away": false, "paint slow": true}
		for _, event := range e.Events() {
			payload, err := event.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if done, is := payload.(*journal.StepDone); is {
				if may, asked := mayHaveRun[done.Step]; asked && strings.Contains(string(done.Outputs), `"failed":true`) != may {
					t.Errorf("%s: %s", done.Step, done.Outputs)
				}
				delete(mayHaveRun, done.Step)
			}
		}
		if len(mayHaveRun) > 0 {
			t.Errorf("nothing came of %v", mayHaveRun)
		}
		e.clean()
	})
}

// TestWhatOnlyReadsIsNotDonePartly: whether its pod never started or its program failed.
func TestWhatOnlyReadsIsNotDonePartly(t *testing.T) {
	for want, write := range map[string]bool{"not done": false, "not done, or only partly": true} {
		for _, program := range []hosttasksim.Program{{Waits: "ErrImagePull"}, {Failed: "the paint is dry"}} {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a")
				e.partial, e.paths = true, []hosttask.Path{{Host: "/etc", At: "/etc"}, {Host: "/wall", At: "/wall", Write: write}}
				e.Set("a", program)
				e.ask()
				e.Start(e.config()).End()
				for _, event := range e.Events() {
					if done, is := event.Decoded().Body.(*journal.StepDone); is && done.Step == "paint a" {
						if how, why := words.NotDone(done); how != want || why == "" {
							t.Errorf("%+v: it is %q: %q, want %q", program, how, why, want)
						}
						return
					}
				}
				t.Errorf("%+v: it has not ended", program)
			})
		}
	}
}

func TestACancelWithdrawsWhatRuns(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.Set("a", hosttasksim.Program{Run: 100 * time.Second})
		e.Set("b", hosttasksim.Program{Start: 20 * time.Second})
		e.ask()
		r := e.Start(e.config())
		e.Pass(5 * time.Second)
		e.Cancel(r)
		if took := r.End(); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if e.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("the story is %q", e.Story())
		}
		e.clean()
	})
}

func TestAStopTakesAwayWhatDoesNotRunAndFindsAgainWhatDoes(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.Set("a", hosttasksim.Program{Run: time.Minute})
		e.Set("b", hosttasksim.Program{Start: 20 * time.Second})
		e.ask()
		r := e.Start(e.config())
		e.Pass(5 * time.Second)
		began := time.Now()
		r.Halt()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if pods := e.Pods(); len(pods) != 1 || pods[0] != "a Running" {
			t.Errorf("left are %q", pods)
		}
		e.Pass(2 * time.Minute) // the program ends, and nobody is there
		if pods := e.Pods(); len(pods) != 1 || pods[0] != "a Succeeded" {
			t.Errorf("left are %q", pods)
		}
		e.Set("b", hosttasksim.Program{})
		e.RunToEnd(e.config())
		want := `a {"node":"a"} (1 pods); b {"node":"b"} (2 pods); 0 left`
		if got := e.outcomes(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		e.clean()
	})
}

// TestWhereNobodyMayWatchPodsAreLookedAt: nothing is missing but that it is noticed at once.
func TestWhereNobodyMayWatchPodsAreLookedAt(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, may := range []bool{true, false} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := newEstate(w, "a")
			if !may {
				e.Forbid("watch pods")
			}
			e.ask()
			took[may] = e.Start(e.config()).End()
			e.clean()
		})
	}
	if took[true] > 4100*time.Millisecond || took[false] < 4500*time.Millisecond || took[false] > 7*time.Second {
		t.Errorf("it took %s where EKCO may watch, and %s elsewhere", took[true], took[false])
	}
}

func TestAQuotaThatIsUsedUpIsNoLackOfPermission(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		e.quota.Store(true)
		e.ask()
		r := e.Start(e.config())
		e.Pass(10 * time.Second)
		failed := e.Record().Steps["paint a"].LastError
		if !strings.Contains(failed, "the quota of namespace kurl does not allow the pod") || strings.Contains(failed, "permission") {
			t.Errorf("it failed with %q", failed)
		}
		e.quota.Store(false)
		r.End()
		e.clean()
	})
}

// TestManyNodesAreDoneTenAtATime: some of them are away, or have their task fail, and
// hold up no other. EKCO is killed and goes on under way.
func TestManyNodesAreDoneTenAtATime(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, names(200)...)
		e.Taint("n0007", journal.TaintNotReady)
		e.Set("n0013", hosttasksim.Program{Waits: "ImagePullBackOff"})
		e.Set("n0021", hosttasksim.Program{Run: time.Minute})
		e.ask()
		r := e.Start(e.config())
		e.Pass(20 * time.Second)
		r.Halt()
		taken := e.takenAway()
		began := time.Now()
		r = e.Start(e.config())
		e.Pass(20 * time.Minute)
		e.Taint("n0007", "")
		e.Set("n0013", hosttasksim.Program{})
		e.Retry(r)
		r.End()
		t.Logf("done in %s, %d events", time.Since(began), len(e.Events()))
		if e.LastLine() != "ended done" || e.MaxAtOnce() != 10 {
			t.Errorf("%q, %d at a time", e.LastLine(), e.MaxAtOnce())
		}
		for _, node := range e.nodes {
			if n := e.Made(node); n != 1 && node != "n0013" && !taken[node] {
				t.Errorf("%d pods were made on %s", n, node)
			}
		}
		e.clean()
	})
}

// TestTwoEKCOsComeToTheSameEnd: each has the action open, as after one was taken for dead.
// There is one pod at a time. Whoever comes second may find it gone, and make another.
func TestTwoEKCOsComeToTheSameEnd(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		other := &estate{World: actionstest.NewWorld(w.T), Cluster: e.Cluster, nodes: e.nodes}
		e.ask()
		other.ask()
		second := other.Start(other.config())
		e.RunToEnd(e.config())
		second.End()
		if e.LastLine() != "ended done" || other.LastLine() != "ended done" || e.MaxAtOnce() > 1 || e.Made("a") > 2 {
			t.Errorf("%d at a time, %d pods; %q, %q", e.MaxAtOnce(), e.Made("a"), e.Story(), other.Story())
		}
		e.clean()
	})
}

func TestWhoFindsNoPlaceWaitsAndHasNotFailed(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, names(11)...)
		e.limit = 10 * time.Minute
		for _, node := range e.nodes {
			e.Set(node, hosttasksim.Program{Run: 5 * time.Minute})
		}
		e.ask()
		r := e.Start(e.config())
		e.Pass(4 * time.Minute)
		record := e.Record()
		waits := 0
		for _, node := range e.nodes {
			step := record.Steps["paint "+node]
			if step.Failures > 0 {
				t.Errorf("%s has failed: %s", node, step.LastError)
			}
			if e.Made(node) == 0 {
				waits++
			}
		}
		if waits != 1 || len(e.Events()) > 60 {
			t.Errorf("%d wait, %d events", waits, len(e.Events()))
		}
		r.End()
		e.clean()
	})
}

// TestWhoWaitsForAPlaceEndsAtOnce: whether its action is cancelled, or EKCO stops, after which
// it goes on. That it was interrupted is no outcome.
func TestWhoWaitsForAPlaceEndsAtOnce(t *testing.T) {
	for name, cancelled := range map[string]bool{"cancelled": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, names(11)...)
				e.partial, e.limit = true, 10*time.Minute
				for _, node := range e.nodes {
					e.Set(node, hosttasksim.Program{Run: 5 * time.Minute})
				}
				e.ask()
				r := e.Start(e.config())
				e.Pass(10 * time.Second)
				began := time.Now()
				if cancelled {
					e.Cancel(r)
					r.End()
				} else {
					r.Halt()
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				if !cancelled {
					for _, node := range e.nodes {
						if step := e.Record().Steps["paint "+node]; step.Done() {
							t.Errorf("on record of %s is %s", node, step.Outputs)
						}
					}
					e.RunToEnd(e.config())
				}
				e.clean()
			})
		})
	}
}

// TestAShortOutageBeforeThePodIsMadeIsNoOutcome: a few attempts may fail.
func TestAShortOutageBeforeThePodIsMadeIsNoOutcome(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		e.partial = true
		e.Outage(true)
		e.ask()
		r := e.Start(e.config())
		e.Pass(5 * time.Second)
		e.Outage(false)
		r.End()
		if got := e.outcomes(); got != `a {"node":"a"} (1 pods); 0 left` {
			t.Errorf("it is %s; %q", got, e.Story())
		}
	})
}

// TestWhatCannotBeReadIsNoResult: an outcome without one where that is enough, else a failure.
func TestWhatCannotBeReadIsNoResult(t *testing.T) {
	for _, partial := range []bool{true, false} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := newEstate(w, "a")
			e.partial = partial
			e.read = func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("it is no colour") }
			e.ask()
			r := e.Start(e.config())
			e.Pass(10 * time.Second)
			if partial {
				r.End()
				if got := e.outcomes(); got != "a it is no colour (1 pods); 0 left" {
					t.Errorf("it is %s", got)
				}
				return
			}
			if step := e.Record().Steps["paint a"]; step.Done() || step.Failures == 0 || !strings.Contains(step.LastError, "it is no colour") {
				t.Errorf("it is %+v", step)
			}
			r.Halt()
		})
	}
}

// TestWhatCannotBeTakenBackIsNotWithdrawn: and what a step left that has failed is no outcome.
func TestWhatCannotBeTakenBackIsNotWithdrawn(t *testing.T) {
	work := shape.Work{Does: "paint"}
	for _, irreversible := range []bool{true, false} {
		var plan journal.Plan
		_, _, err := work.Plan(&plan, hosttask.Task{Node: "a"}, journal.PlannedStep{Irreversible: irreversible})
		if err != nil || len(plan.Steps) != 2 || (len(plan.Undo) == 0) != irreversible {
			t.Errorf("irreversible %t: %+v, %v", irreversible, plan, err)
		}
	}
	record := journal.ActionRecord{Steps: map[string]journal.StepRecord{"paint a": {Outputs: json.RawMessage(`{"missing":"m"}`)}}}
	if outcome, done, err := work.OutcomeOf(record, "a"); done || err != nil {
		t.Errorf("it is %+v, %v", outcome, err)
	}
}

func TestAPodThatSomebodyKillsIsMadeAnew(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		e.ask()
		r := e.Start(e.config())
		e.Pass(2 * time.Second)
		e.Kill("a")
		r.End()
		if e.Made("a") != 2 || e.LastLine() != "ended done" {
			t.Errorf("%d pods, %q", e.Made("a"), e.Story())
		}
		e.clean()
	})
}

func TestAnOutageUnderWayLosesNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a", "b")
		e.ask()
		r := e.Start(e.config())
		e.Pass(2 * time.Second)
		e.Outage(true)
		e.Pass(time.Minute)
		e.Outage(false)
		r.End()
		want := `a {"node":"a"} (1 pods); b {"node":"b"} (1 pods); 0 left`
		if got := e.outcomes(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	})
}

// TestAnOutageThatLastsIsAnOutcomeWhereThatIsEnough: nobody has to come and retry it.
func TestAnOutageThatLastsIsAnOutcomeWhereThatIsEnough(t *testing.T) {
	for outage, want := range map[time.Duration]string{
		20 * time.Second: `a {"node":"a"} (1 pods); 0 left`,
		10 * time.Minute: `a check host task paint on node a: `,
	} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := newEstate(w, "a")
			e.partial = true
			e.ask()
			r := e.Start(e.config())
			e.Pass(2 * time.Second)
			e.Outage(true)
			e.Pass(outage)
			e.Outage(false)
			r.End()
			if got := e.outcomes(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; 0 left") || !strings.HasPrefix(e.LastLine(), "ended done") {
				t.Errorf("after an outage of %s it is %s, want %s; %q", outage, got, want, e.Story())
			}
		})
	}
}

func TestAnAnswerThatIsLostMakesNoSecondPod(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := newEstate(w, "a")
		e.LoseAnswer("create " + e.podOf("a").String())
		e.ask()
		e.RunToEnd(e.config())
		if e.Made("a") != 1 {
			t.Errorf("%d pods: %q", e.Made("a"), e.Story())
		}
	})
}

// takenAway are the nodes whose pod was removed before its program ran.
func (e *estate) takenAway() map[string]bool {
	record, left := e.Record(), strings.Join(e.Pods(), " ")
	taken := map[string]bool{}
	for _, node := range e.nodes {
		if e.Made(node) == 1 && !record.Steps["paint "+node].Done() && !strings.Contains(left, node) {
			taken[node] = true
		}
	}
	if len(taken) > 10 {
		e.T.Errorf("the stop took %d away", len(taken))
	}
	return taken
}

// podOf is where the task of a node has its pod.
func (e *estate) podOf(node string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: hosttasksim.Namespace, Name: e.podName(node)}
}
