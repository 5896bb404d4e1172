package actions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// long is a step that takes as long as it is let.
type long struct{ *script }

func newLong(steps ...journal.PlannedStep) long {
	return long{&script{steps: steps, do: func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}}}
}

func (l long) kinds() []actions.Definition {
	definition := l.definition()
	definition.Steps = map[string]actions.StepDef{"act": {Step: l, Interruptible: true}}
	return []actions.Definition{definition}
}

// hours is a step that may take so long.
func hours(id string) journal.PlannedStep {
	planned := step(id)
	planned.Timeout = journal.Duration(24 * time.Hour)
	return planned
}

func TestACancelCutsAStepShortThatMayBe(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.requestTest()
		r := w.Start(w.Config(newLong(hours("a")).kinds()))
		w.Pass(time.Minute)
		w.cancel("cli:me@here", "enough")
		w.Tell(r, journal.TypeActionCancelling)
		if took := r.End(); took > time.Second {
			t.Errorf("it took %s", took)
		}
		w.WantStory("requested", "planned 1", "started a #1", "cancelling", "failed a #1 for good", "ended cancelled enough")
	})
}

func TestTheWayBackIsNotCutShort(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := newLong(hours("a"))
		undo := step("back")
		undo.Undoes = "a"
		l.undo = []journal.PlannedStep{undo}
		l.do = func(ctx context.Context, id string) error {
			if id == "a" {
				<-ctx.Done()
				return ctx.Err()
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
				return nil
			}
		}
		w.requestTest()
		r := w.Start(w.Config(l.kinds()))
		w.Pass(time.Minute)
		w.cancel("cli:me@here", "enough")
		w.Tell(r, journal.TypeActionCancelling)
		r.End()
		if w.Count("started back #1") != 1 || w.Count("done back #1") != 1 {
			t.Errorf("it was not taken back:\n%s", strings.Join(w.Story(), "\n"))
		}
	})
}

func TestAStopCutsAStepShortThatMayBeAndCountsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.requestTest()
		r := w.Start(w.Config(newLong(hours("a")).kinds()))
		w.Pass(time.Minute)
		began := time.Now()
		r.Stop()
		if err := r.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("stopping took %s", took)
		}
		w.WantStory("requested", "planned 1", "started a #1")
	})
}
