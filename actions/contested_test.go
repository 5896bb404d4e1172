package actions_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func change() *journal.Change {
	return &journal.Change{Key: "replicas", Field: "the replicas of w1", From: "2", To: "3"}
}

func TestAStepThatWouldMakeAContestedChangeWaitsThoughNoKindListsTheRule(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		contested := actionstest.NewPreflight(actions.Hold("another program keeps changing the replicas of w1 back"))
		k := &script{steps: []journal.PlannedStep{step("a"), step("b", "a")}}
		w.Request(testSubject, journal.ActionRequested{Kind: testKind, Change: change()})
		r := w.Start(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{fsm.RuleContested: contested}))
		w.Pass(time.Hour)
		if got := k.calls(); len(got) != 0 {
			t.Errorf("did %q though its change is contested", got)
		}
		if hold := w.Record().Holds["a"]; hold.Preflight != fsm.RuleContested {
			t.Errorf("held by %+v", hold)
		}
		contested.SetVerdict(actions.Pass())
		r.Inbox.Recheck()
		r.End()
		if !w.Ended() {
			t.Errorf("it ends with %s", w.LastLine())
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
				contested := actionstest.NewPreflight(actions.Hold("contested"))
				k := &script{steps: []journal.PlannedStep{step("a")}}
				w.Request(testSubject, request)
				w.RunToEnd(actionstest.With(w.Config(k.kinds()), map[string]actions.Preflight{fsm.RuleContested: contested}))
				if contested.Calls() > 0 || !w.Ended() {
					t.Errorf("asked %d times; %s", contested.Calls(), w.LastLine())
				}
			})
		})
	}
}

func TestARuleThatNobodyCanAnswerHoldsWhatEKCOBegan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		k := &script{steps: []journal.PlannedStep{step("a")}}
		w.requestTest()
		cfg := w.Config(k.kinds())
		delete(cfg.Preflights, fsm.RulePaused)
		r := w.Start(cfg)
		w.Pass(time.Hour)
		if got := k.calls(); len(got) != 0 {
			t.Errorf("did %q though nobody answers whether it is paused", got)
		}
		r.Halt()
	})
}
