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

// withOutputs returns the context for Prove after Do has returned: its record has the outputs of Do.
func (c StepContext) withOutputs(outputs json.RawMessage) StepContext {
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

// afterAttempt returns the context for a step whose attempt has ended.
func (c StepContext) afterAttempt() StepContext {
	c.note, c.mirrored, c.ask = nil, nil, nil
	return c
}

// errNotRunning is returned for calls outside [Step.Do].
var errNotRunning = errors.New("only a running attempt can note outputs or ask its preflights again")

// Note replaces the step's outputs while the step runs, and returns when they are on disk. A later attempt, also in
// another process, reads them with [StepContext.Output]. Each note is an event, so notes should be rare. At the end of
// the step, the outputs that Do or Prove returns replace the noted ones.
//
// Only Do may call Note. After an error the outputs may or may not be on disk.
func (c StepContext) Note(ctx context.Context, outputs any) error {
	return c.recordOutputs(ctx, outputs, false)
}

// NoteProgress is [StepContext.Note] for a step that has got further than any earlier attempt. Earlier failures then no
// longer count against the step's budget.
func (c StepContext) NoteProgress(ctx context.Context, outputs any) error {
	return c.recordOutputs(ctx, outputs, true)
}

// mirrorTime is how long a step waits until its outputs are mirrored. It is a little longer than the 5 seconds by which
// the mirror may lag.
const mirrorTime = 6 * time.Second

// NoteAhead is [StepContext.Note] before an effect that an EKCO on another node could not recognize as EKCO's own. To
// let that EKCO know the outputs, it also waits for the mirror, but at most mirrorTime: without the outputs the other
// EKCO only has more work, and clients may be waiting for the effect.
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

func (c StepContext) recordOutputs(ctx context.Context, outputs any, progress bool) error {
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

// stepNote is a note that a running step passes to the owner.
type stepNote struct {
	step     *stepState
	outputs  json.RawMessage
	progress bool
	// written is closed when the note is on disk.
	written chan struct{}
}

// noteFunc returns the function that passes a step's note to the owner and waits until the note is on disk. It stops
// waiting when a.work ends, which also happens when the owner cannot write.
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

// takeNote drafts the event for a note.
func (a *run) takeNote(n stepNote) {
	a.noted = append(a.noted, n)
	a.draftEvent(n.step.startedSeq, journal.TypeStepNoted, &journal.StepNoted{
		Step: n.step.planned.ID, Attempt: n.step.attempt, Outputs: n.outputs, Progress: n.progress,
	})
}

// answerNotes unblocks the steps whose notes are on disk.
func (a *run) answerNotes() {
	for _, n := range a.noted {
		close(n.written)
	}
	a.noted = nil
}
