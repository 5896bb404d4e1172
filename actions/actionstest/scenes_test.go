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
	// knows, not what there is to see.
	repeats, remembers bool
}

// lamp is the world of that action.
type lamp struct {
	world   *World
	burns   bool
	changes int
}

func (l *lamp) outcome() string {
	return fmt.Sprintf("it burns: %v, after %d changes", l.burns, l.changes)
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
	return nil, ctx.Err()
}

func (l *light) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	if l.remembers {
		return actions.Proof{Done: l.did, Missing: "any memory"}, nil
	}
	return actions.Proof{Done: l.burns, Missing: "light"}, nil
}

func planToLight(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return journal.Plan{Steps: []journal.PlannedStep{{ID: "light", Does: "light", Timeout: journal.Duration(time.Minute)}}}, nil
}

func lighting(wrong defects) Scene {
	return Scene{Points: 8, Set: func(w *World) Stage {
		l := &lamp{world: w}
		w.Request(journal.Subject{Kind: "lamp", Name: "hall", UID: "1"}, journal.ActionRequested{Kind: "light"})
		return Stage{Outcome: l.outcome, Kinds: func(f *Fuse) []actions.Definition {
			step := &light{lamp: l, defects: wrong}
			return f.Mortal(actions.Definition{Kind: "light", Plan: planToLight, Steps: map[string]actions.StepDef{"light": {Step: step}}})
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
