package fsm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// pausableLamp and pausableTorch are machines of which things of one name can be there.
type (
	pausableLamp  struct{ lamp }
	pausableTorch struct{ torch }
)

func meant(s *State, machine, name string) *Thing {
	for _, key := range s.Named(machine, name) {
		return s.Things[key]
	}
	return nil
}

func (pausableLamp) Meant(s *State, name string) *Thing { return meant(s, "lamp", name) }
func (pausableLamp) Nobody(name string) journal.Subject { return subject(name) }
func (pausableLamp) Unknown(_ *State, name string) error {
	return fmt.Errorf("%w lamp %q", ErrUnknown, name)
}
func (pausableTorch) Meant(s *State, name string) *Thing { return meant(s, "torch", name) }
func (pausableTorch) Nobody(name string) journal.Subject { return torchSubject(name) }
func (pausableTorch) Unknown(_ *State, name string) error {
	return fmt.Errorf("%w torch %q", ErrUnknown, name)
}

func torchSubject(name string) journal.Subject { return journal.Subject{Kind: "Torch", Name: name} }

// newHouseWithATorch is a house with a lamp and a torch of the name "hall", and a lamp "desk".
func newHouseWithATorch(t *testing.T) *house {
	h := newHouse(t)
	of := lamps()
	of.Machine = pausableLamp{}
	h.s = NewState(of, Capability{Machine: pausableTorch{}})
	h.observe("hall", `{"lit":true}`)
	h.observe("desk", `{"lit":true}`)
	h.write(journal.Draft{
		Type: journal.TypeThingObserved, Subject: torchSubject("hall"), Actor: "observer/torch",
		Payload: journal.ThingObserved{Machine: "torch", Facts: []byte(`{"lit":true}`)},
	})
	return h
}

func (h *house) pauses(word string) error {
	drafts, err := Pause(h.s, h.now, word, "why", 0, "cli:me@here")
	h.write(drafts...)
	return err
}

func (h *house) resumes(word string) error {
	drafts, err := Resume(h.s, word, "why", "cli:me@here")
	h.write(drafts...)
	return err
}

// wantPaused wants the lamp and the torch "hall" to be paused, or not.
func (h *house) wantPaused(lamp, torch bool) {
	h.t.Helper()
	w := NewWorld(h.s, h.p, h.now)
	for subject, want := range map[journal.Subject]bool{subject("hall"): lamp, torchSubject("hall"): torch} {
		refuses := false
		for _, rule := range firstRules() {
			if rule.Name == RulePaused && !rule.Cluster {
				refuses = rule.Refuses(w, h.s.Things[Key(subject)], nil)
			}
		}
		if refuses != want {
			h.t.Errorf("%s hall is paused: %v, want %v", subject.Kind, refuses, want)
		}
	}
}

func TestAPauseIsThatOfTheThingOfOneMachine(t *testing.T) {
	for _, word := range []string{"torch/hall", "Torch/hall"} {
		h := newHouseWithATorch(t)
		if err := h.pauses(word); err != nil {
			t.Fatal(err)
		}
		h.wantPaused(false, true)
		if err := h.resumes(word); err != nil {
			t.Fatal(err)
		}
		h.wantPaused(false, false)
	}
}

func TestANameThatSeveralMachinesHaveIsAskedBack(t *testing.T) {
	h := newHouseWithATorch(t)
	wantChoice := func(command string, err error) {
		t.Helper()
		choice := fmt.Sprintf(`"ekco %[1]s lamp/hall" or "ekco %[1]s torch/hall"`, command)
		if !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), choice) {
			t.Errorf("got %v, want it to offer %s", err, choice)
		}
	}
	wantChoice("pause", h.pauses("hall"))
	h.wantPaused(false, false)
	for _, word := range []string{"lamp/hall", "torch/hall"} {
		if err := h.pauses(word); err != nil {
			t.Fatal(err)
		}
	}
	wantChoice("resume", h.resumes("hall"))
	h.wantPaused(true, true)
	if err := h.resumes("lamp/hall"); err != nil {
		t.Fatal(err)
	}
	// Only one of the name is paused now.
	if err := h.resumes("hall"); err != nil {
		t.Fatal(err)
	}
	h.wantPaused(false, false)
}

func TestANameThatOneMachineHasNeedsNoMore(t *testing.T) {
	h := newHouseWithATorch(t)
	if err := h.pauses("desk"); err != nil {
		t.Fatal(err)
	}
	if _, paused := h.s.Pauses["lamp/desk"]; !paused || len(h.s.Pauses) != 1 {
		t.Errorf("paused are %v", h.s.Pauses)
	}
	if err := h.pauses("torch/desk"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "torch") {
		t.Errorf("got %v, want that there is no such torch", err)
	}
	if err := h.resumes("hall"); !errors.Is(err, ErrNotPaused) || !strings.HasSuffix(err.Error(), "paused: desk") {
		t.Errorf("got %v, want what is paused", err)
	}
}

func TestTheReasonOfAPauseNamesTheCommandThatEndsIt(t *testing.T) {
	h := newHouseWithATorch(t)
	for _, test := range []struct{ pause, command string }{
		{"lamp/hall", `"ekco resume hall"`}, {"torch/hall", `"ekco resume lamp/hall"`},
	} {
		if err := h.pauses(test.pause); err != nil {
			t.Fatal(err)
		}
		rec := journal.ActionRecord{ID: "light-hall-1", Kind: lampKind, Subject: subject("hall")}
		if got := CheckRule(h.s, h.p, h.now, RulePaused, rec); !got.Hold || !strings.Contains(got.Reason, test.command) {
			t.Errorf("got %+v, want %s", got, test.command)
		}
	}
}

func TestAPauseOfWhatThisEKCODoesNotKnowCanBeEnded(t *testing.T) {
	for _, word := range []string{"shed", "heater/shed"} {
		h := newHouseWithATorch(t)
		h.write(journal.Draft{
			Type: journal.TypePauseSet, Subject: journal.Subject{Kind: "Heater", Name: "shed"}, Payload: journal.PauseSet{Reason: "why"},
		})
		if err := h.resumes(word); err != nil {
			t.Errorf("%s: %v", word, err)
		}
		if len(h.s.Pauses) != 0 {
			t.Errorf("%s: paused are %v", word, h.s.Pauses)
		}
	}
}

func TestPausesOfOneNameEndByThemselvesEach(t *testing.T) {
	h := newHouseWithATorch(t)
	for word, after := range map[string]time.Duration{"lamp/hall": time.Hour, "torch/hall": 2 * time.Hour} {
		drafts, err := Pause(h.s, h.now, word, "why", after, "cli:me@here")
		if err != nil {
			t.Fatal(err)
		}
		h.write(drafts...)
	}
	for _, torch := range []bool{true, false} {
		h.now = h.now.Add(time.Hour)
		h.write(Decide(h.s, h.p, h.now).Events...)
		h.wantPaused(false, torch)
		if _, recorded := h.s.Pauses["torch/hall"]; recorded != torch || len(h.s.Pauses) > 1 {
			t.Errorf("paused are %v", h.s.Pauses)
		}
	}
}

func TestAPauseOutlivesASnapshot(t *testing.T) {
	h := newHouseWithATorch(t)
	if err := h.pauses("torch/hall"); err != nil {
		t.Fatal(err)
	}
	snapshot, err := h.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if h.s, err = LoadState(snapshot, lamps(), Capability{Machine: pausableTorch{}}); err != nil {
		t.Fatal(err)
	}
	h.wantPaused(false, true)
}
