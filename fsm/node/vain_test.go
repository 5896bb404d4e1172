package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// abandon ends the open action as the runner does when a live read says that
// the node answers.
func (w *world) abandon(action string) {
	w.t.Helper()
	w.act(action, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeAbandoned, Reason: "node w1 answers again"})
}

func TestAfterAnAbandonmentNothingIsAskedForUntilTheFactsChangeOrAPauseThatGrows(t *testing.T) {
	w := lostWithPods(t)
	w.pass(6 * time.Minute)
	w.wantDecided("action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing")
	for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		w.abandon(w.open(journal.ActionClearNode, "w1"))
		due := w.now.Add(time.Duration(minutes) * time.Minute)
		d := w.wantDecided("node.transitioned w1: Clearing to Unknown", "policy.refused w1: clear-node by BackOff")
		if !d.Next.Equal(due) {
			t.Fatalf("next: got %s, want %s", d.Next, due)
		}
		if reason := w.s.Refusals[0].Reason; !strings.Contains(reason, "answers again") || !strings.Contains(reason, fsm.Stamp(due)) {
			t.Errorf("the reason is %q", reason)
		}
		w.now = due
		w.wantDecided("action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing", "policy.lifted w1: clear-node by BackOff")
	}
	w.abandon(w.open(journal.ActionClearNode, "w1"))
	w.decide()
	w.pass(time.Minute)
	w.observe("w1", unreachableSince(w.node("w1").UnreachableSince), cordoned)
	w.wantDecided("action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing", "policy.lifted w1: clear-node by BackOff")
}

func TestAnAbandonmentOfOneKindKeepsNoOtherKindBackAndNoOtherNode(t *testing.T) {
	w := due(t, "w1", "w2")
	w.p.Cooldown = 0
	w.pass(time.Second)
	w.decide()
	first := w.open(journal.ActionPurgeNode, "w1")
	w.terminating("w1", "a")
	w.abandon(first)
	w.pass(w.p.PodGrace)
	w.decide()
	if got := w.open(journal.ActionPurgeNode, "w2"); got == "" {
		t.Error("the other node waits too")
	}
	var open []journal.ActionKind
	for _, rec := range w.s.OpenActions() {
		if rec.Subject.Name == "w1" {
			open = append(open, rec.Kind)
		}
	}
	if !slices.Equal(open, []journal.ActionKind{journal.ActionClearNode}) {
		t.Errorf("open about the node are %q", open)
	}
}

func TestAnAbandonmentIsForgottenWhenTheNodeWasHealthyOrAnActionDidItsWork(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"healthy": func(w *world) {
			w.observe("w1")
			w.decide()
		},
		"done": func(w *world) {
			w.pass(time.Minute)
			w.decide()
			w.end(w.open(journal.ActionClearNode, "w1"), journal.OutcomeDone)
			w.decide()
			w.wantState("w1", Clearing) // until its pods are seen to be gone
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := lostWithPods(t)
			w.pass(6 * time.Minute)
			w.decide()
			w.abandon(w.open(journal.ActionClearNode, "w1"))
			w.decide()
			end(w)
			if vain := w.node("w1").Failed; len(vain) > 0 {
				t.Errorf("remembered is %+v", vain)
			}
		})
	}
}

func TestAClockThatIsSetBackMakesNobodyWaitForAnAbandonmentInTheFuture(t *testing.T) {
	w := lostWithPods(t)
	w.pass(20 * time.Minute)
	w.decide()
	w.abandon(w.open(journal.ActionClearNode, "w1"))
	w.pass(-10 * time.Minute)
	w.wantDecided("node.transitioned w1: Clearing to Unknown", "action.requested w1: clear-node a b", "node.transitioned w1: Unknown to Clearing")
}

// TestNoStateLeadsToMoreThanAFewActionsWithoutANewFact ends every action that EKCO
// asks for at once, always in the same way, in any state that a random past leads
// to.
func TestNoStateLeadsToMoreThanAFewActionsWithoutANewFact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.p.Cooldown = 0 // it would hide what comes round and round
		moves := h.moves()
		for range rapid.IntRange(0, 30).Draw(t, "past") {
			moves[rapid.SampledFrom(sortedKeys(moves)).Draw(t, "move")](t)
			h.decideAndCheck(t)
		}
		h.clearTheWay(t)
		outcome := rapid.SampledFrom([]journal.Outcome{journal.OutcomeAbandoned, journal.OutcomeSuperseded, journal.OutcomeDone}).Draw(t, "outcome")
		h.checkRest(t, outcome, time.Hour, 2*7)
		// Each of the two kinds backs off by itself, and may begin to do so only now.
		h.checkRest(t, outcome, 23*time.Hour, 2*(6+24))
	})
}

// clearTheWay takes away what keeps EKCO from acting, and loses a node that has
// pods.
func (h *history) clearTheWay(t *rapid.T) {
	for _, key := range sortedKeys(h.s.Pauses) {
		drafts, err := fsm.Resume(h.s, key, "r", person)
		if err != nil {
			t.Fatal(err)
		}
		h.write(drafts...)
	}
	if h.s.Journal.SafeMode() {
		h.tell(journal.TypeJournalAccepted, journal.JournalSubject, journal.JournalAccepted{})
	}
	h.start()
	for range 3 {
		h.podAny(t)
		h.loseAny(t)
	}
}

// checkRest lets time pass without any news of nodes and pods: for each node there
// are few actions, one more for each of its pods, and few other events.
func (h *history) checkRest(t *rapid.T, outcome journal.Outcome, span time.Duration, few int) {
	requested, first, turns := map[string]int{}, len(h.events), 0
	for end := h.now.Add(span); h.now.Before(end); turns++ {
		d := fsm.Decide(h.s, h.p.whole(), h.now)
		for _, draft := range d.Events {
			if draft.Type == journal.TypeActionRequested {
				requested[draft.Subject.UID]++
			}
		}
		h.mustFold(t, d.Events)
		h.endAll(outcome)
		switch {
		case turns > 2_000:
			t.Fatalf("after %d turns within %s EKCO is not at rest: %v", turns, span-end.Sub(h.now), requested)
		case len(d.Events) > 0:
		case d.Next.IsZero() || d.Next.After(end):
			h.now = end
		default:
			h.now = d.Next
		}
	}
	most := 100
	for uid, count := range requested {
		pods := len(Of(h.s, uid).Pods)
		if count > few+pods {
			t.Fatalf("%d actions within %s for %s, which has %d pods, without any news", count, span, uid, pods)
		}
		most += 10 * (few + pods)
	}
	if got := len(h.events) - first; got > most {
		t.Fatalf("%d events within %s without any news", got, span)
	}
}

// endAll ends what EKCO asked for.
func (h *history) endAll(outcome journal.Outcome) {
	for _, id := range sortedKeys(h.s.Actions) {
		rec := h.s.Actions[id]
		if rec.Request.Manual || rec.Unreadable != "" {
			continue
		}
		if rec.Request.DryRun && outcome == journal.OutcomeDone {
			h.act(id, journal.TypeActionEnded, journal.ActionEnded{Outcome: journal.OutcomeDryRun})
			continue
		}
		h.act(id, journal.TypeActionEnded, journal.ActionEnded{Outcome: outcome, Reason: "so it was drawn"})
	}
}

func TestAPersonsPurgeThatWasAbandonedKeepsEKCOFromNothing(t *testing.T) {
	w := lostWithPods(t)
	purge := w.mustAdmit(ask("w1")).Action
	w.abandon(purge)
	if vain := w.node("w1").Failed; vain != nil {
		t.Errorf("remembered is %+v", vain)
	}
}
