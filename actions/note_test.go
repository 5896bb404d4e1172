package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// noting is a step that counts to three, notes each number, and goes on where it was.
type noting struct {
	after func(ctx context.Context, n int) error
	done  bool
	began []int
}

type count struct {
	N int `json:"n"`
}

func (s *noting) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var at count
	_, err := step.Output(step.Planned.ID, &at)
	return actions.Proof{Done: at.N == 3, Missing: "the count", Outputs: step.Action.Steps[step.Planned.ID].Outputs}, err
}

func (s *noting) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var at count
	if _, err := step.Output(step.Planned.ID, &at); err != nil {
		return nil, err
	}
	s.began = append(s.began, at.N)
	for at.N < 3 {
		at.N++
		if err := step.Note(ctx, at); err != nil {
			return nil, err
		}
		if s.after != nil {
			if err := s.after(ctx, at.N); err != nil {
				return nil, err
			}
		}
	}
	s.done = true
	return json.Marshal(at)
}

func (s *noting) kinds() []actions.Definition {
	k := &script{steps: []journal.PlannedStep{step("a")}}
	definition := k.definition()
	definition.Steps = map[string]actions.StepDef{"act": {Step: s}}
	return []actions.Definition{definition}
}

func TestWhatAStepNotesIsOnDiskBeforeItGoesOn(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		s := &noting{}
		s.after = func(_ context.Context, n int) error {
			if got := string(w.Record().Steps["a"].Outputs); got != fmt.Sprintf(`{"n":%d}`, n) {
				w.T.Errorf("after %d the journal has %s", n, got)
			}
			return nil
		}
		w.requestTest()
		w.RunToEnd(w.Config(s.kinds()))
		w.WantStory("requested", "planned 1", "started a #1", `noted a {"n":1}`, `noted a {"n":2}`, `noted a {"n":3}`, "done a #1", "ended done")
	})
}

func TestAStepGoesOnFromWhatItNotedAfterAFailureAndAfterAStop(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		s := &noting{}
		s.after = func(ctx context.Context, n int) error {
			switch {
			case n == 1:
				return errors.New("no luck")
			case n == 2 && len(s.began) == 2:
				<-ctx.Done() // until the grace is over
				return ctx.Err()
			}
			return nil
		}
		w.requestTest()
		r := w.Start(w.Config(s.kinds()))
		w.Pass(10 * time.Second)
		r.Halt()
		if got := string(w.Record().Steps["a"].Outputs); got != `{"n":2}` || !w.Record().Steps["a"].Open {
			t.Errorf("the journal has %s", got)
		}
		w.RunToEnd(w.Config(s.kinds()))
		w.WantStory("requested", "planned 1", "started a #1", `noted a {"n":1}`, "failed a #1", "started a #2", `noted a {"n":2}`,
			"started a #3", `noted a {"n":3}`, "done a #3", "ended done")
		if len(s.began) != 3 || s.began[1] != 1 || s.began[2] != 2 {
			t.Errorf("it began at %v", s.began)
		}
	})
}

func TestANoteThatCannotBeWrittenEndsTheStep(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		s := &noting{}
		s.after = func(_ context.Context, n int) error {
			if n == 1 {
				w.Store.Break(syscall.ENOSPC)
			}
			return nil
		}
		w.requestTest()
		err := w.Start(w.Config(s.kinds())).Wait()
		if !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Run returned %v", err)
		}
		if s.done {
			t.Error("the step went on with what is not on disk")
		}
	})
}

func TestOnlyAStepUnderWayNotes(t *testing.T) {
	err := actions.StepContext{Planned: journal.PlannedStep{ID: "a"}}.Note(t.Context(), count{})
	if err == nil || !strings.Contains(err.Error(), "only a running attempt") {
		t.Errorf("noted: %v", err)
	}
}

// TestWhatGetsFurtherHasItsWholeBudgetAgain: hours of work may meet more failures than one
// thing may.
func TestWhatGetsFurtherHasItsWholeBudgetAgain(t *testing.T) {
	for further, want := range map[bool]string{true: "ended done", false: "stalled"} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				s := &stumbling{noting: &noting{}, further: further}
				definition := s.kinds()
				definition[0].Steps = map[string]actions.StepDef{"act": {Step: s}}
				cfg := w.Config(definition)
				cfg.Retry.Budget = 2
				w.requestTest()
				r := w.Start(cfg)
				w.Pass(time.Hour)
				if w.Count(want) != 1 {
					t.Errorf("the story is %q", w.Story())
				}
				r.Halt()
			})
		})
	}
}

// stumbling is a step that fails at each number once.
type stumbling struct {
	*noting
	further bool
}

func (s *stumbling) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	var at count
	if _, err := step.Output(step.Planned.ID, &at); err != nil {
		return nil, err
	}
	at.N++
	note := step.Note
	if s.further {
		note = step.NoteProgress
	}
	if err := note(ctx, at); err != nil {
		return nil, err
	}
	if at.N < 3 {
		return nil, errors.New("it stumbled")
	}
	return json.Marshal(at)
}

// ahead is a step that notes something before its effect.
type ahead struct{ effect func() }

func (ahead) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var at count
	_, err := step.Output(step.Planned.ID, &at)
	return actions.Proof{Done: at.N == 2, Missing: "the effect", Outputs: step.Action.Steps[step.Planned.ID].Outputs}, err
}

func (s ahead) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	if err := step.NoteAhead(ctx, count{1}); err != nil {
		return nil, err
	}
	s.effect()
	return json.Marshal(count{2})
}

func TestWhatIsNotedAheadIsMirroredBeforeTheEffect(t *testing.T) {
	for name, answer := range map[string]func(context.Context) actions.Verdict{
		"at once": func(context.Context) actions.Verdict { return actions.Pass() },
		"never": func(ctx context.Context) actions.Verdict {
			<-ctx.Done()
			return actions.Hold("the API does not answer")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				var seen []string
				k := &script{steps: []journal.PlannedStep{step("a")}}
				definition := k.definition()
				began := time.Now()
				definition.Steps = map[string]actions.StepDef{"act": {Step: ahead{func() {
					seen = append(seen, fmt.Sprintf("effect within 7 s: %t", time.Since(began) < 7*time.Second))
				}}}}
				w.requestTest()
				cfg := w.Config([]actions.Definition{definition})
				cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
					seen = append(seen, fmt.Sprintf("mirrored, noted %t", strings.Contains(strings.Join(w.Story(), "\n"), `noted a {"n":1}`)))
					return answer(ctx)
				})
				w.RunToEnd(cfg)
				if got := strings.Join(seen, ", "); got != "mirrored, noted true, effect within 7 s: true" {
					t.Errorf("in this order: %s\n%s", got, strings.Join(w.Story(), "\n"))
				}
			})
		})
	}
}
