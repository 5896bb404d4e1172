package rook

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// notingOption adds a first step that records that the option for single copies will be set: whichever EKCO
// continues the action knows that it may be on.
func notingOption(plan journal.Plan, change journal.RookChange) journal.Plan {
	note := poolStep(journal.StepNoteOption, journal.StepNoteOption, change)
	plan.Steps = append([]journal.PlannedStep{note}, plan.Steps...)
	undo := poolStep(journal.StepPutOptionBack, journal.StepPutOptionBack, change)
	// The undo runs whatever happened to the pool, and while other actions change the storage.
	undo.Undoes, undo.Preflights, undo.Domains = note.ID, nil, actions.NoDomains
	plan.Undo = []journal.PlannedStep{undo}
	return plan
}

// noteOption has no effect: it is in the journal and in the mirror before the option is set.
type noteOption struct{ actions.NoEffect }

// Prove implements [actions.Step].
func (noteOption) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: true}, nil
}

// mustFinish implements [actions.StepDef.MustFinish]: only safe mode holds the undo, which restores the option.
func (noteOption) mustFinish(actions.StepContext) bool { return true }

// lifted records that the option for single copies is on, and must be restored.
type lifted struct {
	Lifted bool `json:"lifted"`
}

// mayBeLifted reports whether a started step may have left the option on. Without a record it may: a mirror may
// lack the last record.
func mayBeLifted(step actions.StepContext) bool {
	now := lifted{Lifted: true}
	_, err := step.Output(step.Planned.ID, &now)
	return err != nil || now.Lifted
}

// mustFinish implements [actions.StepDef.MustFinish]: while the option is on, any client can give any pool a single
// copy.
func (s setNumber) mustFinish(step actions.StepContext) bool {
	number, err := s.read(step)
	return err == nil && number.lifts() && mayBeLifted(step)
}

// cleanUp implements [actions.StepDef.CleanUp]: an interrupted attempt does not leave the option on. If that fails
// too, the next attempt restores it.
func (s setNumber) cleanUp(ctx context.Context, step actions.StepContext, failed error) {
	number, err := s.read(step)
	if failed == nil || err != nil || !number.lifts() {
		return
	}
	if err := restore(ctx, s.parts.Ceph, *number.Option); err != nil {
		step.Log.Warn("cannot restore mon_allow_pool_size_one now", "error", err)
	}
}

// single sets a number while the option is on.
type single struct {
	setNumber
	step   actions.StepContext
	number poolNumber
}

// set switches the option on only while it sets the number. After an interrupted attempt it only restores the
// option, so that all preflights run again.
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

// isInterrupted reports whether an earlier attempt may have left the option on.
func (s single) isInterrupted() bool {
	progress := s.step.Action.Steps[s.number.place]
	return mayBeLifted(s.step) && (len(progress.Outputs) > 0 || progress.Attempts > 1)
}

// interrupted restores the option.
func (s single) interrupted(ctx context.Context) (json.RawMessage, error) {
	if err := s.back(ctx); err != nil {
		return nil, err
	}
	lacks, err := s.lacks(ctx, s.number)
	if err == nil && lacks == "" {
		return s.over(), nil
	}
	return nil, &actions.UnfinishedError{Left: singleCopies + " was left on, and is restored; EKCO tries the pool again", Waits: true}
}

// over is the output of a completed step.
func (single) over() json.RawMessage { return json.RawMessage(`{"lifted":false}`) }

// back restores the option, and records that. Failures do not count as attempts: it is tried until it succeeds,
// or Ceph was removed.
func (s single) back(ctx context.Context) error {
	if err := restore(ctx, s.parts.Ceph, *s.number.Option); err != nil && !s.parts.Removed(ctx) {
		return &actions.UnfinishedError{Left: stillOn(err), Waits: true}
	}
	return s.step.Note(ctx, lifted{})
}

func stillOn(err error) string {
	return singleCopies + " may still be on; EKCO restores it when Ceph answers: " + err.Error()
}

// isBack reports whether the option has its former value. EKCO never changes the value for all daemons.
func isBack(ctx context.Context, of Ceph, before ceph.Option) (bool, error) {
	now, err := of.MonOption(ctx, singleCopies)
	return now.Own == before.Own && (!now.Own || now.Value == before.Value), err
}

// restore restores the option's former value.
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

// putBack restores the option's value from the plan, without a limit of time. It is done if Ceph was removed.
type putBack struct{ parts Parts }

func (putBack) before(step actions.StepContext) (ceph.Option, error) {
	var captured poolsPlan
	if err := step.Facts(&captured); err != nil {
		return ceph.Option{}, err
	}
	if captured.Option == nil {
		return ceph.Option{}, errors.New("restore " + singleCopies + ": the plan does not have its former value")
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
	return actions.Proof{Done: back, Missing: singleCopies + " does not have its former value yet"}, nil
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
