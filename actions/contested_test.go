package actions_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func change() *journal.Change {
	return &journal.Change{Key: "replicas", Field: "the replicas of w1", From: "2", To: "3"}
}

func TestAStepThatWouldMakeAContestedChangeWaitsThoughNoKindListsTheRule(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		contested := answering(actions.Hold("somebody else keeps changing the replicas of w1 back"))
		k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
		w.request(testSubject, journal.ActionRequested{Kind: testKind, Change: change()})
		r := w.start(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{fsm.RuleContested: contested}))
		letPass(time.Hour)
		if got := k.calls(); len(got) != 0 {
			t.Errorf("did %q though its change is contested", got)
		}
		if hold := w.record().Holds["a"]; hold.Preflight != fsm.RuleContested {
			t.Errorf("held by %+v", hold)
		}
		contested.turn(actions.Pass())
		r.inbox.Recheck()
		r.end()
		if !w.ended() {
			t.Errorf("it ends with %s", w.lastLine())
		}
	})
}

func TestAContestIsAskedOnlyAboutWhatEKCOChangesByItself(t *testing.T) {
	for name, request := range map[string]journal.ActionRequested{
		"a person's":       {Kind: testKind, Manual: true, Change: change()},
		"without a change": {Kind: testKind},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				contested := answering(actions.Hold("contested"))
				k := &script{steps: []journal.PlannedStep{step("a")}}
				w.request(testSubject, request)
				w.runToEnd(withPreflights(w.config(k.kinds()), map[string]actions.Preflight{fsm.RuleContested: contested}))
				if contested.called() > 0 || !w.ended() {
					t.Errorf("asked %d times; %s", contested.called(), w.lastLine())
				}
			})
		})
	}
}

func TestARuleThatNobodyCanAnswerHoldsWhatEKCOBegan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.requestTest()
		cfg := w.config(k.kinds())
		delete(cfg.Preflights, fsm.RulePaused)
		r := w.start(cfg)
		letPass(time.Hour)
		if got := k.calls(); len(got) != 0 {
			t.Errorf("did %q though nobody answers whether it is paused", got)
		}
		r.halt()
	})
}
