package fsm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

func TestAPauseThatWouldHaveEndedIsAMistake(t *testing.T) {
	h := newHouseWithATorch(t)
	if drafts, err := Pause(h.s, h.now, "", "why", -time.Second, "cli:me@here"); err == nil || len(drafts) != 0 {
		t.Errorf("got %+v, %v", drafts, err)
	}
	for after, until := range map[time.Duration]time.Time{0: {}, time.Hour: h.now.Add(time.Hour)} {
		drafts, err := Pause(h.s, h.now, "desk", "why", after, "cli:me@here")
		if err != nil || !drafts[0].Payload.(journal.PauseSet).Until.Equal(until) {
			t.Errorf("for %s: %+v, %v", after, drafts, err)
		}
	}
}

func TestTheEndOfAPauseIsThatOfTheThing(t *testing.T) {
	for _, word := range []string{"", "lamp/hall", "desk"} {
		h := newHouseWithATorch(t)
		if err := h.pauses(word); err != nil {
			t.Fatal(err)
		}
		set := h.events[len(h.events)-1]
		drafts, err := Resume(h.s, word, "why", "cli:me@here")
		if err != nil || drafts[0].Subject != set.Subject || drafts[0].Cause != set.Seq {
			t.Errorf("%q: %+v, %v; the pause is %+v", word, drafts, err, set)
		}
	}
}

func TestWhatIsNotPausedIsNamed(t *testing.T) {
	h := newHouseWithATorch(t)
	for word, want := range map[string]string{
		"":          "resume: EKCO is not paused, and nothing else is",
		"desk":      "resume: lamp desk is not paused, and nothing else is",
		"hall":      "resume: hall is not paused, and nothing else is",
		"lamp/hall": "resume: lamp hall is not paused, and nothing else is",
		"dusk":      `unknown lamp "dusk"`,
	} {
		if err := h.resumes(word); err == nil || err.Error() != strings.ReplaceAll(want, "not paused", ErrNotPaused.Error()) && !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, want %s", word, err, want)
		}
	}
	if err := h.pauses(""); err != nil {
		t.Fatal(err)
	}
	if err := h.resumes("desk"); err == nil || !strings.HasSuffix(err.Error(), "; paused: everything") {
		t.Errorf("got %v", err)
	}
	if err := h.resumes("hall"); errors.Is(err, ErrUnknown) || len(h.s.Pauses) != 1 {
		t.Errorf("a thing's name ended the pause of everything: %v", err)
	}
}

func TestTermsAreAllThatTheKindSays(t *testing.T) {
	all := lamps()
	all.Kinds[0].Domains = []string{"lamps"}
	standing, err := TermsByKind(all)
	if err != nil || !slices.Equal(standing[lampKind].Domains, []string{"lamps"}) {
		t.Errorf("%v: the terms are %+v", err, standing[lampKind])
	}
	names := NewState(all).RuleNames()
	slices.Sort(names)
	if !slices.Contains(names, "Daylight") || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the rules are %q", names)
	}
}

// pausableHeating is a machine that is not called as its things are.
type pausableHeating struct{ pausableLamp }

func (pausableHeating) Name() string { return "heating" }
func (pausableHeating) Nobody(name string) journal.Subject {
	return journal.Subject{Kind: "Stove", Name: name}
}
func (pausableHeating) Meant(s *State, name string) *Thing { return meant(s, "heating", name) }

func TestAMachineAndItsThingsCanBothBeNamed(t *testing.T) {
	for _, word := range []string{"heating/hall", "stove/hall", "STOVE/hall", "Heating/hall"} {
		h := newHouseWithATorch(t)
		of := lamps()
		of.Machine = pausableLamp{}
		h.s = NewState(of, Capability{Machine: pausableHeating{}})
		h.observe("hall", `{"lit":true}`)
		stove := journal.Subject{Kind: "Stove", Name: "hall", UID: "uid-1"}
		h.write(journal.Draft{Type: journal.TypeThingObserved, Subject: stove, Payload: journal.ThingObserved{Machine: "heating", Facts: []byte(`{}`)}})
		if err := h.pauses(word); err != nil {
			t.Fatal(err)
		}
		if _, paused := h.s.Pauses["stove/hall"]; !paused || len(h.s.Pauses) != 1 {
			t.Errorf("%s: paused are %v", word, h.s.Pauses)
		}
		if drafts, err := Resume(h.s, word, "", "cli:me@here"); err != nil || drafts[0].Subject != stove {
			t.Errorf("%s: %+v, %v", word, drafts, err)
		}
	}
	h := newHouseWithATorch(t)
	h.write(journal.Draft{Type: journal.TypePauseSet, Subject: journal.Subject{Kind: "Heater", Name: "shed"}, Payload: journal.PauseSet{}})
	if err := h.resumes("Heater/shed"); err != nil {
		t.Error(err)
	}
}
