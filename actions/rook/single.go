package rook

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// notingOption has the plan say, before anything is done, that the option for single copies is
// to be set: whoever goes on with the action, and wherever, knows that it may be on.
func notingOption(plan journal.Plan, change journal.RookChange) journal.Plan {
	note := poolStep(journal.StepNoteOption, journal.StepNoteOption, change)
	plan.Steps = append([]journal.PlannedStep{note}, plan.Steps...)
	undo := poolStep(journal.StepPutOptionBack, journal.StepPutOptionBack, change)
	// Whatever has become of the pool, and whoever changes the storage meanwhile.
	undo.Undoes, undo.Preflights, undo.Domains = note.ID, nil, actions.NoDomains
	plan.Undo = []journal.PlannedStep{undo}
	return plan
}

// noteOption has no effect: it stands in the journal, and in the mirror, before the option is
// set.
type noteOption struct{}

var _ actions.UrgentStep = noteOption{}

// Prove implements [actions.Step].
func (noteOption) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: true}, nil
}

// Do implements [actions.Step].
func (noteOption) Do(context.Context, actions.StepContext) (json.RawMessage, error) { return nil, nil }

// Urgent implements [actions.UrgentStep]: nothing but safe mode keeps what takes it back, by
// which the option is as it was.
func (noteOption) Urgent(actions.StepContext) bool { return true }

// lifted is what a step notes of the option for single copies: it is on, and must not stay.
type lifted struct {
	Lifted bool `json:"lifted"`
}

// mayBeLifted reports whether a step that was begun may have left the option on, by what is on
// record: also where nothing is, since a mirror may lack what an EKCO noted last.
func mayBeLifted(step actions.StepContext) bool {
	now := lifted{Lifted: true}
	_, err := step.Output(step.Planned.ID, &now)
	return err != nil || now.Lifted
}

// Urgent implements [actions.UrgentStep]: while the option is on, anybody may give any pool a
// single copy.
func (s setNumber) Urgent(step actions.StepContext) bool {
	number, err := s.read(step)
	return err == nil && number.lifts() && mayBeLifted(step)
}

// Tidy implements [actions.TidyStep]: an attempt that was cut short does not leave the option
// on. If that fails too, the next attempt sees to it.
func (s setNumber) Tidy(ctx context.Context, step actions.StepContext, failed error) {
	number, err := s.read(step)
	if failed == nil || err != nil || !number.lifts() {
		return
	}
	if err := restore(ctx, s.parts.Ceph, *number.Option); err != nil {
		step.Log.Warn("the option for single copies is left on for now", "error", err)
	}
}

// single sets a number with the option on.
type single struct {
	setNumber
	step   actions.StepContext
	number poolNumber
}

// set has the option on only while it sets the number. Of an attempt that was interrupted it only
// puts the option back: all that is asked before is then asked anew.
func (s single) set(ctx context.Context, set func() error) (json.RawMessage, error) {
	if s.isInterrupted() {
		return s.interrupted(ctx)
	}
	if err := s.step.Note(ctx, lifted{Lifted: true}); err != nil {
		return nil, err
	}
	err := s.parts.Ceph.SetMonOption(ctx, singleCopies, "true")
	if err == nil {
		err = set()
	}
	if backErr := s.back(ctx); backErr != nil {
		return nil, errors.Join(backErr, err)
	}
	return s.over(), err
}

// isInterrupted reports whether an attempt before this one may have left the option on.
func (s single) isInterrupted() bool {
	progress := s.step.Action.Steps[s.number.place]
	return mayBeLifted(s.step) && (len(progress.Outputs) > 0 || progress.Attempts > 1)
}

// interrupted puts the option back.
func (s single) interrupted(ctx context.Context) (json.RawMessage, error) {
	if err := s.back(ctx); err != nil {
		return nil, err
	}
	lacks, err := s.lacks(ctx, s.number)
	if err == nil && lacks == "" {
		return s.over(), nil
	}
	return nil, &actions.UnfinishedError{Left: singleCopies + " was left on, and is as it was again; the pool is tried once more", Waits: true}
}

// over is what the step leaves.
func (single) over() json.RawMessage { return json.RawMessage(`{"lifted":false}`) }

// back puts the option back, and that on record. How often that fails does not count: it is
// tried until it is so, or Ceph was removed, and the option with it.
func (s single) back(ctx context.Context) error {
	if err := restore(ctx, s.parts.Ceph, *s.number.Option); err != nil && !s.parts.Removed(ctx) {
		return &actions.UnfinishedError{Left: stillOn(err), Waits: true}
	}
	return s.step.Note(ctx, lifted{})
}

func stillOn(err error) string {
	return singleCopies + " may still be on, and is put back as soon as Ceph answers: " + err.Error()
}

// isBack reports whether the option is what it was before. What it is for all daemons was never
// changed.
func isBack(ctx context.Context, of Ceph, before ceph.Option) (bool, error) {
	now, err := of.MonOption(ctx, singleCopies)
	return now.Own == before.Own && (!now.Own || now.Value == before.Value), err
}

// restore puts the option back as it was before.
func restore(ctx context.Context, of Ceph, before ceph.Option) error {
	back, err := isBack(ctx, of, before)
	switch {
	case err != nil || back:
		return err
	case before.Own:
		return of.SetMonOption(ctx, singleCopies, before.Value)
	}
	return of.ResetMonOption(ctx, singleCopies)
}

// putBack puts the option back as it was when it was planned, however long that takes. Once Ceph
// was removed there is none.
type putBack struct{ parts Parts }

func (putBack) before(step actions.StepContext) (ceph.Option, error) {
	var captured poolsPlan
	if err := step.Facts(&captured); err != nil {
		return ceph.Option{}, err
	}
	if captured.Option == nil {
		return ceph.Option{}, errors.New("put " + singleCopies + " back: the plan does not say what it was")
	}
	return *captured.Option, nil
}

// Prove implements [actions.Step].
func (s putBack) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	before, err := s.before(step)
	if err != nil {
		return actions.Proof{}, err
	}
	back, err := isBack(ctx, s.parts.Ceph, before)
	switch {
	case err != nil && s.parts.Removed(ctx):
		return actions.Proof{Done: true}, nil
	case err != nil:
		return actions.Proof{Missing: stillOn(err), Waits: true}, nil
	}
	return actions.Proof{Done: back, Missing: singleCopies + " is not as it was"}, nil
}

// Do implements [actions.Step].
func (s putBack) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	before, err := s.before(step)
	if err != nil {
		return nil, err
	}
	if err := restore(ctx, s.parts.Ceph, before); err != nil {
		return nil, &actions.UnfinishedError{Left: stillOn(err), Waits: true}
	}
	return nil, nil
}
