package fsm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// changed plays an action that made the change to a value, and how it ended; steps are
// those that were done.
func (h *house) changed(to string, outcome journal.Outcome, steps ...string) {
	h.t.Helper()
	of, id := subject("hall"), fmt.Sprintf("light-hall-%d", h.s.Seq)
	h.write(journal.Draft{Type: journal.TypeActionRequested, Subject: of, Action: id, Actor: ActorOperator, Payload: journal.ActionRequested{
		Kind: lampKind, Change: &journal.Change{Key: "switch", Field: "the switch of lamp hall", To: to},
	}})
	plan := journal.Plan{}
	for _, step := range steps {
		plan.Steps = append(plan.Steps, journal.PlannedStep{ID: step, Does: step})
	}
	h.write(journal.Draft{Type: journal.TypeActionPlanned, Subject: of, Action: id, Payload: journal.ActionPlanned{Plan: plan}})
	for _, step := range steps {
		h.write(journal.Draft{Type: journal.TypeStepStarted, Subject: of, Action: id, Payload: journal.StepStarted{Step: step, Attempt: 1}})
		h.write(journal.Draft{Type: journal.TypeStepDone, Subject: of, Action: id, Payload: journal.StepDone{Step: step, Attempt: 1}})
	}
	h.write(journal.Draft{Type: journal.TypeActionEnded, Subject: of, Action: id, Payload: journal.ActionEnded{Outcome: outcome}})
	h.now = h.now.Add(time.Minute)
}

func TestAChangeToAnotherValueIsNoFight(t *testing.T) {
	h := newHouse(t)
	h.p.Cooldown = 0
	h.observe("hall", `{"lit":false}`)
	for range 3 {
		h.changed("on", journal.OutcomeDone)
		h.changed("dim", journal.OutcomeDone)
	}
	h.now = h.now.Add(time.Minute)
	h.light()
}

func TestAChangeThatWasUndoneBeforeItsActionEndedCounts(t *testing.T) {
	for name, steps := range map[string][]string{"made": {"switch-on"}, "not made": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.p.Cooldown = 0
			h.observe("hall", `{"lit":false}`)
			h.changed("on", journal.OutcomeAbandoned, steps...)
			h.changed("on", journal.OutcomeAbandoned, steps...)
			h.observe("hall", `{"lit":false}`) // it does not rest for having been in vain
			h.write(Decide(h.s, h.p, h.now).Events...)
			h.now = h.now.Add(time.Minute)
			if steps == nil {
				h.light()
				return
			}
			h.wantContested(time.Hour)
		})
	}
}

func TestTheIDOfAnActionHasNoSlash(t *testing.T) {
	h := newHouse(t)
	if id := h.s.ActionID(h.s.Kind(lampKind), subject("cellar/hall")); !strings.HasPrefix(id, "light-cellar-hall-") {
		t.Errorf("the id is %q", id)
	}
}
