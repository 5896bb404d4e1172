package fsm

import (
	"bytes"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// washKind washes lamps.
const washKind journal.ActionKind = "wash-lamp"

// washed is the machine of lamps that are lit, and washed once.
type washed struct{ lamp }

func (washed) Goal(t *Thing, _ journal.State, _ *World) journal.State {
	if lit(t) {
		return "Burning"
	}
	return "Dark"
}

func (washed) Wants(t *Thing, w *World, want func(Want)) {
	if lit(t) || len(w.Open(t)) > 0 {
		return
	}
	if t.Last[washKind] == nil {
		want(Want{Kind: washKind, Due: t.Since.Add(30 * time.Minute)})
	}
	want(Want{Kind: lampKind, Due: t.Since.Add(time.Minute)})
}

// newWashhouse has a lamp that has just gone out.
func newWashhouse(t *testing.T) *house {
	rules := []string{RuleBackOff}
	h := newHouseOf(t, Capability{Machine: washed{}, Kinds: []ActionKind{
		{Name: lampKind, Verb: "light", Machine: "lamp", Rules: rules}, {Name: washKind, Verb: "wash", Machine: "lamp", Rules: rules},
	}})
	h.observe("hall", `{"lit":false}`)
	h.decided("thing.transitioned hall: Burning to Dark")
	return h
}

// end ends the open action, and returns of what kind it was, "" for none.
func (h *house) end(outcomes map[journal.ActionKind]journal.Outcome) journal.ActionKind {
	h.t.Helper()
	open := h.s.OpenActions()
	if len(open) == 0 {
		return ""
	}
	ended := journal.ActionEnded{Outcome: outcomes[open[0].Kind], Reason: "so it was"}
	h.write(journal.Draft{Type: journal.TypeOf(ended), Subject: open[0].Subject, Action: open[0].ID, Payload: ended})
	return open[0].Kind
}

// asked decides for so long, and returns after which time which action was asked for.
func (h *house) asked(span time.Duration, outcomes map[journal.ActionKind]journal.Outcome) map[time.Duration]journal.ActionKind {
	h.t.Helper()
	asked, began := map[time.Duration]journal.ActionKind{}, h.now
	for h.now.Sub(began) < span {
		d := Decide(h.s, h.p, h.now)
		h.write(d.Events...)
		if kind := h.end(outcomes); kind != "" {
			asked[h.now.Sub(began)] = kind
			continue
		}
		if len(d.Events) > 0 {
			continue
		}
		if h.now = d.Next; h.now.Sub(began) > span {
			h.now = began.Add(span)
		}
	}
	return asked
}

func TestWhatIsInVainOfOneKindDelaysNoOtherAndIsNotForgottenByIt(t *testing.T) {
	for _, outcome := range []journal.Outcome{journal.OutcomeDone, journal.OutcomeAbandoned} {
		h := newWashhouse(t)
		asked := h.asked(70*time.Minute, map[journal.ActionKind]journal.Outcome{lampKind: journal.OutcomeSuperseded, washKind: outcome})
		for minute, want := range map[int]journal.ActionKind{1: lampKind, 2: lampKind, 4: lampKind, 8: lampKind, 16: lampKind, 30: washKind, 32: lampKind, 64: lampKind} {
			if got := asked[time.Duration(minute)*time.Minute]; got != want {
				t.Errorf("%s: after %d minutes %q was asked for, want %q", outcome, minute, got, want)
			}
		}
		if len(asked) != 8 {
			t.Errorf("%s: asked for were %v", outcome, asked)
		}
	}
}

func TestWhatWasInVainOutlivesASnapshot(t *testing.T) {
	h := newWashhouse(t)
	outcomes := map[journal.ActionKind]journal.Outcome{lampKind: journal.OutcomeAbandoned, washKind: journal.OutcomeAbandoned}
	h.asked(31*time.Minute, outcomes)
	snapshot, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadState(snapshot, h.s.cache.capabilities...)
	if err != nil {
		t.Fatal(err)
	}
	h.s = loaded
	h.decided()
	if vain := loaded.Things["Lamp/hall"].Failed; len(vain) != 2 || vain[lampKind].Times != 5 || vain[washKind].Times != 1 {
		t.Errorf("remembered are %+v", vain)
	}
	snapshot.State = bytes.Replace(snapshot.State, []byte(`"vain":{`), []byte(`"vain":{"polish-lamp":null,`), 1)
	loaded, err = LoadState(snapshot, h.s.cache.capabilities...)
	if err != nil {
		t.Fatal(err)
	}
	h.s = loaded
	jumped := journal.ClockJumped{By: journal.Duration(time.Hour)}
	h.write(journal.Draft{Type: journal.TypeOf(jumped), Subject: journal.OperatorSubject, Payload: jumped})
	if vain := loaded.Things["Lamp/hall"].Failed; len(vain) != 2 {
		t.Errorf("remembered are %+v", vain)
	}
}
