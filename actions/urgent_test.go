package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// door is a step that opens a door and closes it again, and must not leave it open.
type door struct {
	*script
}

type opened struct {
	Open bool `json:"open"`
}

func (d door) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	if err := step.Note(ctx, opened{Open: true}); err != nil {
		return nil, err
	}
	return d.script.Do(ctx, step)
}

func (d door) isOpen(step actions.StepContext) bool {
	var now opened
	_, err := step.Output(step.Planned.ID, &now)
	return err == nil && now.Open
}

func (d door) kinds() []actions.Definition {
	definition := d.definition()
	definition.Steps = map[string]actions.StepDef{"act": {Step: d, MustFinish: d.isOpen}}
	definition.Preflights = map[string]actions.Preflight{"Holding": actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
		return actions.Hold("not now")
	})}
	return []actions.Definition{definition}
}

// halfOpen puts an action on disk whose step was interrupted with the door open, or before.
func halfOpen(w *world, open bool) {
	interrupted(w, withPreflights(inStorage(step("a")), "Holding"))
	if open {
		w.Append("operator", journal.StepNoted{Step: "a", Attempt: 1, Outputs: json.RawMessage(`{"open":true}`)}, journal.TypeStepNoted)
	}
}

func withPreflights(step journal.PlannedStep, names ...string) journal.PlannedStep {
	step.Preflights = append(step.Preflights, names...)
	return step
}

func TestWhatWasInterruptedWhereItMustNotStayGoesOnWhateverHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		halfOpen(w, true)
		cfg := w.Config(door{&script{}}.kinds())
		cfg.Domains = nobodysTurn{}
		began := time.Now()
		w.RunToEnd(cfg)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		w.WantStory("requested", "planned 1", "started a #1", `noted a {"open":true}`, "started a #2", `noted a {"open":true}`, "done a #2", "ended done")
	})
}

func TestItGoesOnAlsoAfterAFailureThatLeftIt(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		halfOpen(w, true)
		k := &script{}
		k.do = func(context.Context, string) error {
			if len(k.calls()) < 3 {
				return &actions.UnfinishedError{Left: "the door is open", Waits: true}
			}
			return nil
		}
		k.prove = func(context.Context, string) (bool, error) { return len(k.calls()) >= 3, nil }
		w.RunToEnd(w.Config(door{k}.kinds()))
	})
}

func TestWhatIsNotUrgentAsksItsPreflights(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		halfOpen(w, false)
		k := &script{}
		r := w.Start(w.Config(door{k}.kinds()))
		w.Pass(time.Minute)
		if held := w.Record().Holds["a"]; held.Preflight != "Holding" || len(k.calls()) != 0 {
			t.Errorf("held by %+v; did %q", held, k.calls())
		}
		r.Halt()
	})
}

func TestInSafeModeNothingIsUrgent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		halfOpen(w, true)
		k := &script{}
		cfg := w.Config(door{k}.kinds())
		cfg.Preflights[actions.SafeMode] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			return actions.Hold("the journal lost something")
		})
		r := w.Start(cfg)
		w.Pass(time.Minute)
		if held := w.Record().Holds["a"]; held.Preflight != actions.SafeMode || len(k.calls()) != 0 {
			t.Errorf("held by %+v; did %q", held, k.calls())
		}
		r.Halt()
	})
}

// TestWhatIsGivenUpWhereItMustNotStayIsTakenBack: nobody may come for a while.
func TestWhatIsGivenUpWhereItMustNotStayIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		back := step("back")
		back.Undoes = "a"
		k := &script{steps: []journal.PlannedStep{step("a")}, undo: []journal.PlannedStep{back}}
		k.do = func(_ context.Context, id string) error {
			if id == "a" {
				return errors.New("it does not close")
			}
			return nil
		}
		k.prove = func(_ context.Context, id string) (bool, error) { return id == "back", nil }
		definition := door{k}.kinds()
		w.requestTest()
		w.RunToEnd(w.Config(definition))
		if n := w.Count("failed a"); n != 10 || w.Count("stalled") != 0 || w.Count("done back") != 1 || w.LastLine() != "ended abandoned step a failed 10 times: it does not close" {
			t.Errorf("the story is %q", w.Story())
		}
	})
}

// cancelled puts an action on disk that was cancelled after its step was interrupted with the
// door open, or before. What takes the step back asks what holds.
func cancelled(w *world, open bool) door {
	back := withPreflights(inStorage(step("back")), "Holding")
	back.Undoes = "a"
	a := step("a")
	w.requestTest()
	w.Append("operator", journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{a}, Undo: []journal.PlannedStep{back}}}, journal.TypeActionPlanned)
	w.Append("operator", journal.StepStarted{Step: "a", Attempt: 1}, journal.TypeStepStarted)
	if open {
		w.Append("operator", journal.StepNoted{Step: "a", Attempt: 1, Outputs: json.RawMessage(`{"open":true}`)}, journal.TypeStepNoted)
	}
	w.Cancel(nil)
	return door{&script{}}
}

// TestWhatTakesBackWhatMustNotStayIsAsUrgent: a pause, or another action, would leave it there.
func TestWhatTakesBackWhatMustNotStayIsAsUrgent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		cfg := w.Config(cancelled(w, true).kinds())
		cfg.Domains = nobodysTurn{}
		began := time.Now()
		w.RunToEnd(cfg)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if w.Count("done back") != 1 || w.Count("held") != 0 {
			t.Errorf("the story is %q", w.Story())
		}
	})
}

func TestWhatTakesBackWhatMayStayAsksItsPreflights(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := cancelled(w, false)
		r := w.Start(w.Config(d.kinds()))
		w.Pass(time.Minute)
		if held := w.Record().Holds["back"]; held.Preflight != "Holding" || len(d.calls()) != 0 {
			t.Errorf("held by %+v; did %q", held, d.calls())
		}
		r.Halt()
	})
}

func TestInSafeModeNothingIsTakenBackUrgently(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := cancelled(w, true)
		cfg := w.Config(d.kinds())
		cfg.Preflights[actions.SafeMode] = actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
			return actions.Hold("the journal lost something")
		})
		r := w.Start(cfg)
		w.Pass(time.Minute)
		if held := w.Record().Holds["back"]; held.Preflight != actions.SafeMode || len(d.calls()) != 0 {
			t.Errorf("held by %+v; did %q", held, d.calls())
		}
		r.Halt()
	})
}

// nobodysTurn never lets anybody in.
type nobodysTurn struct{}

func (nobodysTurn) Take(context.Context, fsm.Claim) (fsm.Taken, bool, error) {
	return fsm.Taken{}, false, errors.New("nobody is let in")
}
func (nobodysTurn) Leave(string, string) {}

func inStorage(step journal.PlannedStep) journal.PlannedStep {
	step.Domains = []string{journal.DomainStorage}
	return step
}
