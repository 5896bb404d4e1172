package actions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// leaving returns the context for the proof of an attempt whose Do has returned: the step has the outputs of Do.
func (c StepContext) leaving(outputs json.RawMessage) StepContext {
	c.note, c.mirrored, c.ask = nil, nil, nil
	if len(outputs) == 0 {
		return c
	}
	steps := maps.Clone(c.Action.Steps)
	if steps == nil {
		steps = make(map[string]journal.StepRecord)
	}
	progress := steps[c.Planned.ID]
	progress.Outputs = outputs
	steps[c.Planned.ID], c.Action.Steps = progress, steps
	return c
}

// over returns the context for a step whose attempt is over.
func (c StepContext) over() StepContext {
	c.note, c.mirrored, c.ask = nil, nil, nil
	return c
}

// errNotRunning is returned for calls outside of [Step.Do].
var errNotRunning = errors.New("only a running attempt can note outputs or ask its preflights again")

// Note replaces the step's outputs while it runs, and returns when they are on disk. A later attempt reads them with
// [StepContext.Output], also in another process. Each note is an event, so notes should be rare. The final outputs are
// those that Do or Prove returns.
//
// Only Do may call it. After an error the outputs may or may not be on disk.
func (c StepContext) Note(ctx context.Context, outputs any) error {
	return c.keep(ctx, outputs, false)
}

// NoteProgress is [StepContext.Note] for a step that has come further than in any attempt before: its failures so far no
// longer count against its budget.
func (c StepContext) NoteProgress(ctx context.Context, outputs any) error {
	return c.keep(ctx, outputs, true)
}

// mirrorTime is how long a step waits until its outputs are mirrored: a little longer than the mirror delays a round of
// writes after many others.
const mirrorTime = 6 * time.Second

// NoteAhead is [StepContext.Note] before an effect that an EKCO on another node could not recognize as EKCO's own. It
// also waits for the mirror, so that this EKCO would know the outputs, but only for mirrorTime: the mirror only saves the
// other EKCO some work, and clients may be waiting for the effect.
func (c StepContext) NoteAhead(ctx context.Context, outputs any) error {
	if err := c.Note(ctx, outputs); err != nil || c.mirrored == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	if verdict := c.mirrored.Check(ctx, c.Action); verdict.Kind != VerdictPass {
		c.Log.Warn("the step continues, although its noted outputs are not mirrored yet", "reason", verdict.Reason)
	}
	return nil
}

func (c StepContext) keep(ctx context.Context, outputs any, progress bool) error {
	raw, err := json.Marshal(outputs)
	if err == nil && c.note == nil {
		err = errNotRunning
	}
	if err == nil {
		err = c.note(ctx, raw, progress)
	}
	if err != nil {
		return fmt.Errorf("note outputs of step %q of %s: %w", c.Planned.ID, c.Action.ID, err)
	}
	return nil
}

// stepNote is a note of a running step.
type stepNote struct {
	step     *stepState
	outputs  json.RawMessage
	progress bool
	// written is closed when the note is on disk.
	written chan struct{}
}

// noteFunc returns the function that passes a step's note to the owner and waits until it is on disk. It stops waiting
// when a.work ends, as it does when the owner cannot write.
func (a *run) noteFunc(s *stepState) func(context.Context, json.RawMessage, bool) error {
	return func(ctx context.Context, outputs json.RawMessage, progress bool) error {
		n := stepNote{s, outputs, progress, make(chan struct{})}
		select {
		case a.notes <- n:
		case <-a.work.Done():
			return a.work.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-n.written:
			return nil
		case <-a.work.Done():
			return a.work.Err()
		}
	}
}

// takeNote drafts the event.
func (a *run) takeNote(n stepNote) {
	a.noted = append(a.noted, n)
	a.note(n.step.startedSeq, journal.TypeStepNoted, &journal.StepNoted{
		Step: n.step.planned.ID, Attempt: n.step.attempt, Outputs: n.outputs, Progress: n.progress,
	})
}

// answerNotes lets the steps continue whose notes are on disk.
func (a *run) answerNotes() {
	for _, n := range a.noted {
		close(n.written)
	}
	a.noted = nil
}
