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

// untidy is a step whose attempts leave something behind.
type untidy struct {
	*script
	// lost says that the effect will not come any more.
	lost func() bool
	// tidied are the ends of its attempts, and left is how long each had.
	tidied []error
	left   []time.Duration
	panics bool
}

func (u *untidy) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := u.script.Prove(ctx, step)
	proof.Lost = u.lost != nil && u.lost()
	return proof, err
}

func (u *untidy) cleanUp(ctx context.Context, step actions.StepContext, failed error) {
	u.tidied = append(u.tidied, failed)
	deadline, _ := ctx.Deadline()
	u.left = append(u.left, time.Until(deadline))
	if err := step.Note(ctx, "late"); err == nil {
		panic("a note after the attempt")
	}
	if u.panics {
		panic("untidy")
	}
}

func newUntidy(steps ...journal.PlannedStep) *untidy {
	return &untidy{script: &script{steps: steps}}
}

func (u *untidy) kinds() []actions.Definition {
	definition := u.definition()
	definition.Steps = map[string]actions.StepDef{"act": {Step: u, CleanUp: u.cleanUp}}
	return []actions.Definition{definition}
}

func never(context.Context, string) (bool, error) { return false, nil }

func TestAStepIsToldHowEachOfItsAttemptsEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		u, failures := newUntidy(step("a")), 0
		u.do = func(context.Context, string) error {
			if failures++; failures <= 2 {
				return errBroken
			}
			return nil
		}
		u.prove = func(context.Context, string) (bool, error) { return failures > 2, nil }
		w.requestTest()
		w.RunToEnd(w.Config(u.kinds()))
		if len(u.tidied) != 3 || !errors.Is(u.tidied[0], errBroken) || !errors.Is(u.tidied[1], errBroken) || u.tidied[2] != nil {
			t.Errorf("it was told %v", u.tidied)
		}
	})
}

func TestAnEffectThatWillNotComeAnyMoreIsNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		u := newUntidy(step("a"))
		u.prove = func(context.Context, string) (bool, error) { return len(u.calls()) > 1, nil }
		u.lost = func() bool { return len(u.calls()) == 1 }
		w.requestTest()
		if took := w.Start(w.Config(u.kinds())).End(); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		w.WantStory("requested", "planned 1", "started a #1", "failed a #1", "started a #2", "done a #2", "ended done")
		if u.tidied[0] == nil || u.tidied[0].Error() != "the effect" {
			t.Errorf("the first attempt failed with %v", u.tidied[0])
		}
	})
}

func TestAnAttemptThatTookTooLongIsTidiedInATimeOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		u := newUntidy(step("a"))
		u.prove = func(context.Context, string) (bool, error) { return len(u.calls()) > 1, nil }
		w.requestTest()
		w.RunToEnd(w.Config(u.kinds()))
		if !errors.Is(u.tidied[0], context.DeadlineExceeded) || u.left[0] < time.Second {
			t.Errorf("it ended with %v, and had %s", u.tidied[0], u.left[0])
		}
	})
}

func TestAStopAndACancelTidyWhatIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		u := newUntidy(step("a"))
		undo := step("back")
		undo.Undoes, undo.Does = "a", "undo"
		u.undo, u.prove = []journal.PlannedStep{undo}, never
		kinds := u.kinds()
		kinds[0].Steps["undo"] = actions.StepDef{Step: &script{}}
		w.requestTest()
		r := w.Start(w.Config(kinds))
		w.Pass(10 * time.Second)
		r.Halt()
		if len(u.tidied) != 1 || !errors.Is(u.tidied[0], context.Canceled) || u.left[0] < time.Second {
			t.Errorf("at the stop it was told %v, and had %s", u.tidied, u.left)
		}
		r = w.Start(w.Config(kinds))
		w.Pass(10 * time.Second)
		w.Cancel(r)
		r.End()
		if len(u.tidied) != 2 || !errors.Is(u.tidied[1], context.Canceled) {
			t.Errorf("at the cancel it was told %v", u.tidied)
		}
		if w.Count("done back") != 1 || w.LastLine() != "ended cancelled changed my mind" {
			t.Errorf("the story is %q", w.Story())
		}
	})
}

func TestAPanicOfWhatTidiesChangesNothingAboutTheAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		u := newUntidy(step("a"))
		u.panics = true
		w.requestTest()
		w.RunToEnd(w.Config(u.kinds()))
		w.WantStory("requested", "planned 1", "started a #1", "done a #1", "ended done")
		if !strings.Contains(w.Logged(), "untidy") {
			t.Error("the panic is not in the log")
		}
	})
}
