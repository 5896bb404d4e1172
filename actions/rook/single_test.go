package rook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/sim"
	"github.com/replicatedhq/ekco/journal"
)

// forbidden is what the option was before, which an EKCO is to put back.
var forbidden = ceph.Option{Value: "false", Own: true}

// sizeOfMgrs is the step that sets the pool of the mgr to a single copy.
var sizeOfMgrs = journal.PoolPlace(journal.OldMgrPool, journal.PoolSize)

// toSingle puts on disk that the mgr's pool shall have a single copy.
func toSingle(w *actionstest.World) *estate {
	w.T.Helper()
	onItsTerms(w)
	e := mgrPool(3, forbidden).onHosts(1)
	w.Request(e.subject, journal.ActionRequested{Kind: journal.ActionSetCephPools, Input: numbers(3, 1)})
	return e
}

// asItWas expects that of the option.
func (e *estate) asItWas(w *actionstest.World) {
	w.T.Helper()
	if now := e.ceph.Option(cephsim.SizeOne); now != forbidden {
		w.T.Errorf("the option is %+v, and was %+v: %q", now, forbidden, w.Story())
	}
}

// dies runs the action until its process dies at the crash point, and reports whether it did.
func (e *estate) dies(w *actionstest.World, at int) bool {
	w.T.Helper()
	ctx, kill := context.WithTimeout(w.T.Context(), time.Hour)
	defer kill()
	f := actionstest.NewFuse(at, kill)
	cfg := w.Config(e.over(mortalCeph{e.ceph, f}))
	cfg.Store = f.Store(w.Store)
	return actions.NewRunner(cfg).Run(ctx, w.Record(), nil) != nil
}

// TestNothingButSafeModeKeepsTheOptionOn: whoever was killed while it was on, the next EKCO puts
// it back though all of policy holds, and nobody lets it have the storage. The pool waits.
func TestNothingButSafeModeKeepsTheOptionOn(t *testing.T) {
	left := 0
	for _, safe := range []bool{false, true} {
		for at, died := 1, true; died; at++ {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := toSingle(w)
				if died = e.dies(w, at); !died || !e.ceph.Option(cephsim.SizeOne).On() {
					return
				}
				left++
				cfg := w.Config(e.definitions())
				cfg.Domains = nobodysTurn{}
				for rule := range cfg.Preflights {
					if (rule == actions.SafeMode) == safe {
						cfg.Preflights[rule] = actionstest.Always(actions.Hold("not now"))
					}
				}
				r := w.Start(cfg)
				w.Pass(time.Minute)
				if safe {
					if option := e.ceph.Option(cephsim.SizeOne); !option.On() {
						w.T.Errorf("in safe mode the option was set: %q", w.Story())
					}
				} else {
					e.asItWas(w)
				}
				r.Halt()
			})
		}
	}
	if left < 6 {
		t.Errorf("only %d kills left the option on", left)
	}
}

// nobodysTurn never lets anybody in.
type nobodysTurn struct{}

func (nobodysTurn) Take(context.Context, fsm.Claim) (fsm.Taken, bool, error) {
	return fsm.Taken{}, false, errors.New("nobody is let in")
}
func (nobodysTurn) Leave(string, string) {}

// TestTheOptionIsNeverLeftOnHoweverLongThatTakes: the action is not given up.
func TestTheOptionIsNeverLeftOnHoweverLongThatTakes(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := toSingle(w)
		back := &refusing{Ceph: e.ceph}
		r := w.Start(w.Config(e.over(back)))
		w.Pass(24 * time.Hour)
		record := w.Record()
		if record.Stalled != nil || record.Ended != nil || !e.ceph.Option(cephsim.SizeOne).On() {
			w.T.Errorf("after a day it is %+v: %q", record.Stalled, w.Story())
		}
		if n := len(w.Events()); n > 6500 {
			w.T.Errorf("after a day the journal has %d events of it", n)
		}
		e.ceph.Outage(true)
		w.Pass(time.Hour)
		if record := w.Record(); record.Stalled != nil || record.Holds[sizeOfMgrs].Reason == "" || !strings.Contains(record.Holds[sizeOfMgrs].Reason, "may still be on") {
			w.T.Errorf("without an answer it is held by %+v", record.Holds)
		}
		e.ceph.Outage(false)
		back.gives.Store(true)
		r.End()
		e.asItWas(w)
		if w.LastLine() != "ended done" || !strings.HasPrefix(e.said(), "size 1,") {
			w.T.Errorf("it came to %s: %q", e.said(), w.Story())
		}
	})
}

// refusing is a Ceph that does not let the option be put back.
type refusing struct {
	Ceph
	gives atomic.Bool
}

func (r *refusing) SetMonOption(ctx context.Context, name, value string) error {
	if value != "true" && !r.gives.Load() {
		return errors.New("EPERM")
	}
	return r.Ceph.SetMonOption(ctx, name, value)
}

// TestAPoolThatRefusesLeavesTheOptionAsItWas after each try, and when it is cancelled.
func TestAPoolThatRefusesLeavesTheOptionAsItWas(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := toSingle(w)
		e.ceph.Refuse(true, "SetPoolNumber")
		r := w.Start(w.Config(e.definitions()))
		w.Pass(completeFor + 10*time.Second)
		e.asItWas(w)
		on := slices.ContainsFunc(e.ceph.Effects(), func(effect sim.Effect) bool { return strings.HasPrefix(effect.Name, "config-set") })
		if !on {
			w.T.Errorf("the option was never on: %+v", e.ceph.Effects())
		}
		w.Cancel(r)
		r.End()
		e.asItWas(w)
		if !strings.HasPrefix(w.LastLine(), "ended cancelled") {
			w.T.Errorf("it came to %q", w.Story())
		}
	})
}

// TestAnAttemptThatIsCutShortDoesNotLeaveTheOptionOn: EKCO stops while Ceph does not answer.
func TestAnAttemptThatIsCutShortDoesNotLeaveTheOptionOn(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := toSingle(w)
		r := w.Start(w.Config(e.over(silent{e.ceph})))
		w.Pass(completeFor + 10*time.Second)
		if !e.ceph.Option(cephsim.SizeOne).On() {
			w.T.Errorf("the option is off: %q", w.Story())
		}
		r.Halt()
		e.asItWas(w)
		w.RunToEnd(w.Config(e.definitions()))
		e.asItWas(w)
		if w.LastLine() != "ended done" {
			w.T.Errorf("it came to %q", w.Story())
		}
	})
}

// silent is a Ceph that does not say whether it sets a pool.
type silent struct{ Ceph }

func (silent) SetPoolNumber(ctx context.Context, _, _ string, _ int, _ bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestWhoTakesOverWithoutKnowingThatTheOptionIsOnPutsItBack: what the first EKCO did last is not
// in the mirror, and the second has no reason to go on.
func TestWhoTakesOverWithoutKnowingThatTheOptionIsOnPutsItBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := toSingle(w)
		r := w.Start(w.Config(e.over(silent{e.ceph})))
		w.Pass(completeFor + 10*time.Second)
		record := w.Record()
		delete(record.Steps, sizeOfMgrs)
		r.Halt()
		e.ceph.PutOption(cephsim.SizeOne, ceph.Option{Value: "true", Own: true}) // it was killed
		e.ceph.SetPool(journal.OldMgrPool, 2)

		other := actionstest.NewWorld(w.T)
		onItsTerms(other)
		other.AppendAbout(e.subject, "operator", journal.ActionAdopted{Record: record, JournalID: "first"}, journal.TypeActionAdopted)
		other.RunToEnd(other.Config(e.definitions()))
		e.asItWas(other)
		if !strings.HasPrefix(other.LastLine(), "ended abandoned another client changed it") {
			w.T.Errorf("it came to %q", other.Story())
		}
	})
}

// TestThatTheOptionIsToBeSetIsOnRecordFirst: what puts it back waits for nobody's storage.
func TestThatTheOptionIsToBeSetIsOnRecordFirst(t *testing.T) {
	record := journal.ActionRecord{Request: journal.ActionRequested{Input: numbers(3, 1)}}
	of := Dependencies{Ceph: mgrPool(3, ceph.Option{}).ceph}.setPoolsDefinition()
	plan, err := of.Plan(t.Context(), record)
	if err != nil || len(plan.Undo) != 1 || len(plan.Steps) != 3 {
		t.Fatalf("%v: the plan is %+v", err, plan)
	}
	if first, second := plan.Steps[0], plan.Steps[1]; first.Does != journal.StepNoteOption || second.ID != sizeOfMgrs || !slices.Equal(second.After, []string{first.ID}) {
		t.Errorf("it begins with %+v, and then %+v", first, second)
	}
	if undo := plan.Undo[0]; undo.Does != journal.StepPutOptionBack || undo.Undoes != plan.Steps[0].ID || undo.Domains == nil || len(undo.Domains)+len(undo.Preflights) > 0 {
		t.Errorf("what puts it back is %+v", undo)
	}
	if of.Expendable {
		t.Error("where the mirror has no space it is left out")
	}
}

// TestTwoEKCOsLeaveTheOptionAsItWas: each has a journal of its own, and one may put the option back
// while the other needs it.
func TestTwoEKCOsLeaveTheOptionAsItWas(t *testing.T) {
	for _, apart := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond, 550 * time.Millisecond} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := toSingle(w)
			e.ceph.SetLatency(100 * time.Millisecond)
			other := actionstest.NewWorld(w.T)
			onItsTerms(other)
			other.Request(e.subject, journal.ActionRequested{Kind: journal.ActionSetCephPools, Input: numbers(3, 1)})
			first := w.Start(w.Config(e.definitions()))
			w.Pass(apart)
			other.RunToEnd(other.Config(e.definitions()))
			first.End()
			e.asItWas(w)
			if !strings.HasPrefix(e.said(), "size 1,") || w.LastLine() != "ended done" || other.LastLine() != "ended done" {
				w.T.Errorf("%s apart it is %s: %q, %q", apart, e.said(), w.Story(), other.Story())
			}
		})
	}
}

// TestAPlanOfBeforeIsCarriedOutUnderItsOldName: an upgrade must not leave the option on.
func TestAPlanOfBeforeIsCarriedOutUnderItsOldName(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := toSingle(w)
			old := e.definitions()
			for i, kind := range old {
				if kind.Kind != journal.ActionSetCephPools {
					continue
				}
				plan := kind.Plan
				old[i].Plan = func(ctx context.Context, record journal.ActionRecord) (journal.Plan, error) {
					made, err := plan(ctx, record)
					made.Steps[0].ID, made.Steps[0].Does = "allow-single-copy", "allow-single-copy"
					made.Steps[1].After, made.Undo[0].Undoes = []string{"allow-single-copy"}, "allow-single-copy"
					return made, err
				}
			}
			want := "ended done"
			if cancelled {
				e.ceph.SetLatency(time.Second)
				want = "ended cancelled"
			}
			r := w.Start(w.Config(old))
			if cancelled {
				for w.Count("done allow-single-copy") == 0 {
					w.Pass(100 * time.Millisecond)
				}
				w.Cancel(r)
			}
			r.End()
			e.asItWas(w)
			if !strings.HasPrefix(w.LastLine(), want) || w.Count("done allow-single-copy") != 1 {
				w.T.Errorf("%q", w.Story())
			}
		})
	}
}

// TestOnlyTheSizeTakesTheOptionAndTheSwitch: that a pool is served with a single copy takes neither.
func TestOnlyTheSizeTakesTheOptionAndTheSwitch(t *testing.T) {
	for setting, want := range map[string]bool{journal.PoolSize: true, journal.PoolMinSize: false} {
		number := poolNumber{poolsPlan: poolsPlan{Sure: true, Option: &ceph.Option{}}, RookNumber: journal.RookNumber{To: 1}, setting: setting}
		if number.needsConfirmation() != want || number.needsOption() != want {
			t.Errorf("%s takes the switch: %t, the option: %t", setting, number.needsConfirmation(), number.needsOption())
		}
	}
}

// TestAnAttemptOfWhichNothingWasNotedMayHaveLeftTheOptionOn: a mirror may lack what was noted last.
func TestAnAttemptOfWhichNothingWasNotedMayHaveLeftTheOptionOn(t *testing.T) {
	for attempts, want := range map[int]bool{1: false, 2: true} {
		step := actions.StepContext{Planned: journal.PlannedStep{ID: sizeOfMgrs}}
		step.Action.Steps = map[string]journal.StepRecord{sizeOfMgrs: {Attempts: attempts}}
		if got := (singleCopy{step: step, number: poolNumber{place: sizeOfMgrs}}).isInterrupted(); got != want {
			t.Errorf("in attempt %d the one before counts: %t", attempts, got)
		}
	}
}

func TestAnOptionThatIsAsItWasIsNotSetAgain(t *testing.T) {
	e := mgrPool(1, forbidden)
	if err := setOptionBack(t.Context(), e.ceph, forbidden); err != nil || len(e.ceph.Effects()) > 0 {
		t.Errorf("%v: done was %+v", err, e.ceph.Effects())
	}
}

// TestTheOptionIsNotCalledBackBecauseNobodySays: not before Rook was removed with its namespace.
func TestTheOptionIsNotCalledBackBecauseNobodySays(t *testing.T) {
	e := mgrPool(3, ceph.Option{})
	of := e.definitions()[3]
	record := journal.ActionRecord{Subject: e.subject}
	record.Request.Input = numbers(3, 1)
	var err error
	if record.Plan, err = of.Plan(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	prove := func() actions.Proof {
		proof, err := of.Steps[journal.StepPutOptionBack].Prove(t.Context(), actions.StepContext{Action: record, Planned: record.Plan.Undo[0]})
		if err != nil {
			t.Error(err)
		}
		return proof
	}
	e.ceph.PutOption(cephsim.SizeOne, ceph.Option{Value: "true", Own: true})
	e.ceph.Outage(true)
	if proof := prove(); proof.Done || !proof.Waits {
		t.Errorf("while Ceph does not answer the proof is %+v", proof)
	}
	e.objects.Remove(rook.NamespaceRef())
	if proof := prove(); !proof.Done {
		t.Errorf("once Rook was removed the proof is %+v", proof)
	}
	e.ceph.Outage(false)
	if proof := prove(); proof.Done {
		t.Errorf("of a Ceph that answers all the same the proof is %+v", proof)
	}
}
