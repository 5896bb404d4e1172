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

// leaving returns the context for the proof of an attempt that has come to its end: it reads
// what that left as it will be on record.
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

// over returns the context for a step of which no attempt is under way any more.
func (c StepContext) over() StepContext {
	c.note, c.mirrored, c.ask = nil, nil, nil
	return c
}

// errNotUnderWay is what a note comes to outside of [Step.Do].
var errNotUnderWay = errors.New("only a running attempt can note outputs or ask its preflights again")

// Note keeps outputs with the step while it is under way, in the place of those that it
// had, and returns once they are on disk: what the step does next, it does with them on
// record. A later attempt reads them with [StepContext.Output], also in another process.
// Each note is an event, so that a step notes rarely. What the step has at its end it
// returns from Do, or else from Prove.
//
// Only Do may call it. After an error nobody knows whether the outputs are on disk.
func (c StepContext) Note(ctx context.Context, outputs any) error {
	return c.keep(ctx, outputs, false)
}

// NoteProgress is [StepContext.Note] of a step that is further than it ever was, as one that
// goes through many things: what failed before that does not count against its budget, which
// is for where it is now.
func (c StepContext) NoteProgress(ctx context.Context, outputs any) error {
	return c.keep(ctx, outputs, true)
}

// mirrorTime is how long a step waits for the mirror of what it noted: a little longer than the mirror
// waits with a round of writes after many others.
const mirrorTime = 6 * time.Second

// NoteAhead is [StepContext.Note] before an effect of which an EKCO that starts elsewhere could
// not tell who made it: it returns once that EKCO would know what is noted. The mirror is waited
// for a moment, no longer: it only saves the other EKCO from finding out anew, and somebody may
// be waiting for the effect.
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
		err = errNotUnderWay
	}
	if err == nil {
		err = c.note(ctx, raw, progress)
	}
	if err != nil {
		return fmt.Errorf("note outputs of step %q of %s: %w", c.Planned.ID, c.Action.ID, err)
	}
	return nil
}

// stepNote is what a step under way wants to be on disk.
type stepNote struct {
	step     *stepState
	outputs  json.RawMessage
	progress bool
	// written is closed once it is.
	written chan struct{}
}

// notesOf hands what a step notes to the owner, and waits until that has written it. It
// does not wait longer than work goes on: an owner that cannot write ends that.
func (a *run) notesOf(s *stepState) func(context.Context, json.RawMessage, bool) error {
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

// answerNotes lets the steps go on whose notes are on disk.
func (a *run) answerNotes() {
	for _, n := range a.noted {
		close(n.written)
	}
	a.noted = nil
}
