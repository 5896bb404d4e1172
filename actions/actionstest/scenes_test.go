package actionstest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defects are what can be wrong with the action that lights a lamp.
type defects struct {
	// repeats: its effect counts every time. remembers: its proof is what the process
	// knows, not what there is to see. undeclared: it does not declare that a later step needs its outputs.
	repeats, remembers, undeclared bool
}

// lamp is the world of that action.
type lamp struct {
	world   *World
	burns   bool
	changes int
	// label has the outputs of the step that lights it.
	label string
}

func (l *lamp) outcome() string {
	return fmt.Sprintf("it burns: %v, after %d changes, and has label %q", l.burns, l.changes, l.label)
}

// light is the step as one process runs it.
type light struct {
	*lamp
	defects
	did bool
}

func (l *light) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	l.world.MustBeStarted(step.Planned.ID)
	if !l.burns || l.repeats {
		l.burns = true
		l.changes++
	}
	l.did = true
	return watts, ctx.Err()
}

func (l *light) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	if l.remembers {
		return actions.Proof{Done: l.did, Missing: "any memory", Outputs: watts}, nil
	}
	return actions.Proof{Done: l.burns, Missing: "light", Outputs: watts}, nil
}

// watts are the outputs of the step that lights the lamp.
var watts = json.RawMessage(`{"watts":60}`)

// labelling puts the outputs of the first step on the lamp.
type labelling struct{ *lamp }

func (l labelling) Do(_ context.Context, step actions.StepContext) (json.RawMessage, error) {
	l.label = "for " + string(step.Action.Steps["light"].Outputs)
	return nil, nil
}

func (l labelling) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: l.label != "", Missing: "the label"}, nil
}

func planToLight(context.Context, journal.ActionRecord) (journal.Plan, error) {
	minute := journal.Duration(time.Minute)
	return journal.Plan{Steps: []journal.PlannedStep{
		{ID: "light", Does: "light", Timeout: minute},
		// It waits until the mirror has the outputs of the first step.
		{ID: "label", Does: "label", Timeout: minute, After: []string{"light"}, Irreversible: true},
	}}, nil
}

func lighting(wrong defects) Scene {
	return Scene{Points: 8, Set: func(w *World) Stage {
		l := &lamp{world: w}
		w.Request(journal.Subject{Kind: "lamp", Name: "hall", UID: "1"}, journal.ActionRequested{Kind: "light"})
		return Stage{Outcome: l.outcome, Kinds: func(f *Fuse) []actions.Definition {
			lighting := actions.Definition{Kind: "light", Plan: planToLight, Needed: []string{"light"}, Steps: map[string]actions.StepDef{
				"light": {Step: &light{lamp: l, defects: wrong}}, "label": {Step: labelling{l}},
			}}
			if wrong.undeclared {
				lighting.Needed = nil
			}
			return f.Mortal(lighting)
		}}
	}}
}

func TestAnActionWithoutDefectsPassesTheCrashMatrix(t *testing.T) {
	Scenes{"light": lighting(defects{})}.Run(t)
}

func TestTheCrashMatrixFindsDefects(t *testing.T) {
	t.Setenv(crashpoints.CountVariable, "all")
	for name, test := range map[string]struct {
		wrong defects
		finds map[string]func(Scene, *testing.T) []string
	}{
		"an effect that counts every time": {defects{repeats: true}, map[string]func(Scene, *testing.T) []string{
			"done again": Scene.doneAgain,
		}},
		"a proof from memory": {defects{repeats: true, remembers: true}, map[string]func(Scene, *testing.T) []string{
			"killed at any point": Scene.killedAtAnyPoint,
			"killed twice":        Scene.killedTwice,
			"finished elsewhere":  Scene.finishedElsewhere,
			"older journal":       Scene.resumedFromOlderJournal,
		}},
		"outputs that are not declared as needed": {defects{undeclared: true}, map[string]func(Scene, *testing.T) []string{
			"without outputs":    Scene.heldWithoutOutputs,
			"without one output": Scene.heldWithoutOneOutput,
		}},
	} {
		for by, find := range test.finds {
			t.Run(name+" by "+by, func(t *testing.T) {
				if len(find(lighting(test.wrong), t)) == 0 {
					t.Error("it finds nothing")
				}
			})
		}
	}
}

func TestAnEffectWithoutARecordIsNoticed(t *testing.T) {
	InBubble(t, func(w *World) {
		started := func(attempt int) {
			w.Append("operator", journal.StepStarted{Step: "a", Attempt: attempt}, journal.TypeStepStarted)
		}
		for _, step := range []struct {
			does func()
			want bool
		}{
			{func() { w.Request(journal.NodeSubject("w1", "1"), journal.ActionRequested{Kind: "x"}) }, false},
			{func() { started(1) }, true},
			{func() { w.Append("operator", journal.StepFailed{Step: "a", Attempt: 1}, journal.TypeStepFailed) }, false},
			{func() { started(2) }, true},
			{func() { w.Append("operator", journal.StepStarted{Step: "b", Attempt: 1}, journal.TypeStepStarted) }, true},
			{func() { w.Append("operator", journal.StepDone{Step: "a", Attempt: 2}, journal.TypeStepDone) }, false},
		} {
			step.does()
			if got := w.open("a"); got != step.want {
				t.Errorf("step a is open: %v, want %v; %q", got, step.want, w.Story())
			}
		}
	})
}
