package rook

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/journal"
)

// withOptionRecord adds a first step that records that EKCO will set the option for single copies. Any EKCO that
// continues the action then knows that the option may be on.
func withOptionRecord(plan journal.Plan, change journal.RookChange) journal.Plan {
	note := poolStep(journal.StepNoteOption, journal.StepNoteOption, change)
	plan.Steps = append([]journal.PlannedStep{note}, plan.Steps...)
	undo := poolStep(journal.StepPutOptionBack, journal.StepPutOptionBack, change)
	// The undo runs whatever happened to the pool, even while other actions change the storage.
	undo.Undoes, undo.Preflights, undo.Domains = note.ID, nil, actions.NoDomains
	plan.Undo = []journal.PlannedStep{undo}
	return plan
}

// recordOption has no effect: its start is in the journal and in the mirror before EKCO sets the option.
type recordOption struct{ actions.NoEffect }

func (recordOption) Prove(context.Context, actions.StepContext) (actions.Proof, error) {
	return actions.Proof{Done: true}, nil
}

// mustFinish implements [actions.StepDef.MustFinish]: only safe mode may hold the undo, which restores the option.
func (recordOption) mustFinish(actions.StepContext) bool { return true }

// optionState is the output that records whether the option for single copies is on and must be restored.
type optionState struct {
	Lifted bool `json:"lifted"`
}

// mayBeLifted reports whether a started step may have left the option on. It returns true if there is no record,
// because a mirror may lack the last record.
func mayBeLifted(step actions.StepContext) bool {
	now := optionState{Lifted: true}
	_, err := step.Output(step.Planned.ID, &now)
	return err != nil || now.Lifted
}

// mustFinish implements [actions.StepDef.MustFinish]. The step must finish, because it turns the option off again:
// while the option is on, any client can give any pool a single copy.
func (s setNumber) mustFinish(step actions.StepContext) bool {
	number, err := s.read(step)
	return err == nil && number.needsOption() && mayBeLifted(step)
}

// cleanUp implements [actions.StepDef.CleanUp]: it restores the option after an interrupted attempt. If that fails, the
// next attempt restores it.
func (s setNumber) cleanUp(ctx context.Context, step actions.StepContext, failed error) {
	number, err := s.read(step)
	if failed == nil || err != nil || !number.needsOption() {
		return
	}
	if err := setOptionBack(ctx, s.parts.Ceph, *number.Option); err != nil {
		step.Log.Warn("cannot restore mon_allow_pool_size_one now", "error", err)
	}
}

// singleCopy sets a number, and switches the option on for that time.
type singleCopy struct {
	setNumber
	step   actions.StepContext
	number poolNumber
}

// setWithOption switches the option on only while it sets the number. After an interrupted attempt it only restores the
// option, so that all preflights run again before another try.
func (s singleCopy) setWithOption(ctx context.Context, set func() error) (json.RawMessage, error) {
	if s.isInterrupted() {
		return s.restoreInterrupted(ctx)
	}
	if err := s.step.Note(ctx, optionState{Lifted: true}); err != nil {
		return nil, err
	}
	err := s.parts.Ceph.SetMonOption(ctx, singleCopies, "true")
	if err == nil {
		err = set()
	}
	if backErr := s.restoreOption(ctx); backErr != nil {
		return nil, errors.Join(backErr, err)
	}
	return s.doneOutput(), err
}

// isInterrupted reports whether an earlier attempt may have left the option on.
func (s singleCopy) isInterrupted() bool {
	progress := s.step.Action.Steps[s.number.place]
	return mayBeLifted(s.step) && (len(progress.Outputs) > 0 || progress.Attempts > 1)
}

// restoreInterrupted restores the option after an interrupted attempt.
func (s singleCopy) restoreInterrupted(ctx context.Context) (json.RawMessage, error) {
	if err := s.restoreOption(ctx); err != nil {
		return nil, err
	}
	lacks, err := s.differenceReason(ctx, s.number)
	if err == nil && lacks == "" {
		return s.doneOutput(), nil
	}
	return nil, &actions.UnfinishedError{Left: singleCopies + " was left on, and is restored; EKCO tries the pool again", Waits: true}
}

func (singleCopy) doneOutput() json.RawMessage { return json.RawMessage(`{"lifted":false}`) }

// restoreOption restores the option, and records that. A failure does not count as an attempt: EKCO retries until it
// succeeds or Ceph was removed.
func (s singleCopy) restoreOption(ctx context.Context) error {
	if err := setOptionBack(ctx, s.parts.Ceph, *s.number.Option); err != nil && !s.parts.Removed(ctx) {
		return &actions.UnfinishedError{Left: stillOn(err), Waits: true}
	}
	return s.step.Note(ctx, optionState{})
}

func stillOn(err error) string {
	return singleCopies + " may still be on; EKCO restores it when Ceph answers: " + err.Error()
}

// isRestored reports whether the option has its former value. EKCO never changes the value for all daemons.
func isRestored(ctx context.Context, of Ceph, before ceph.Option) (bool, error) {
	now, err := of.MonOption(ctx, singleCopies)
	return now.Own == before.Own && (!now.Own || now.Value == before.Value), err
}

func setOptionBack(ctx context.Context, of Ceph, before ceph.Option) error {
	back, err := isRestored(ctx, of, before)
	switch {
	case err != nil || back:
		return err
	case before.Own:
		return of.SetMonOption(ctx, singleCopies, before.Value)
	}
	return of.ResetMonOption(ctx, singleCopies)
}

// undoOption is the undo step that restores the option's value from the plan. It retries without limit, and is done if
// Ceph was removed.
type undoOption struct{ parts Dependencies }

func (undoOption) before(step actions.StepContext) (ceph.Option, error) {
	var captured poolsPlan
	if err := step.Facts(&captured); err != nil {
		return ceph.Option{}, err
	}
	if captured.Option == nil {
		return ceph.Option{}, errors.New("restore " + singleCopies + ": the plan does not have its former value")
	}
	return *captured.Option, nil
}

func (s undoOption) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	before, err := s.before(step)
	if err != nil {
		return actions.Proof{}, err
	}
	back, err := isRestored(ctx, s.parts.Ceph, before)
	switch {
	case err != nil && s.parts.Removed(ctx):
		return actions.Proof{Done: true}, nil
	case err != nil:
		return actions.Proof{Missing: stillOn(err), Waits: true}, nil
	}
	return actions.Proof{Done: back, Missing: singleCopies + " does not have its former value yet"}, nil
}

func (s undoOption) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	before, err := s.before(step)
	if err != nil {
		return nil, err
	}
	if err := setOptionBack(ctx, s.parts.Ceph, before); err != nil {
		return nil, &actions.UnfinishedError{Left: stillOn(err), Waits: true}
	}
	return nil, nil
}
