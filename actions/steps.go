package actions

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// stepState is what a run knows about a step beyond the record.
type stepState struct {
	planned journal.PlannedStep
	code    StepDef
	group   *group
	// busy is set while the step is being checked or running.
	busy bool
	// exhausted is set when the budget is spent.
	exhausted bool
	// next is when a failed step is tried again. waits is when a step whose remaining work has to wait is checked again.
	next  time.Time
	waits checkState
	// waited counts the attempts in a row that had to wait although the check before them saw something to do.
	waited int
	// attempt is the number of the last attempt. startedSeq is the event that started it, the cause of the events that
	// follow.
	attempt    int
	startedSeq uint64
}

// group is the steps that have the same preflights and domains. They are checked together and, if a preflight holds,
// wait together.
type group struct {
	checkState
	// changes is set when its steps change something; irreversible is set when that cannot be undone.
	changes, irreversible bool
	// mustFinish is set when each of its steps has a [StepDef.MustFinish], or undoes one that has.
	mustFinish bool
	// heldStep is the step under which the group's hold is recorded, or empty.
	heldStep string
	// domains are those that each of its steps takes. claimed is the step that claims them, or empty; waitsFrom is since
	// when it waits for them.
	domains   []string
	claimed   string
	waitsFrom time.Time
}

// takePlan makes the run's view of the record's plan.
func (a *run) takePlan() {
	a.gate = gatePreflights(a.record.Plan)
	for _, planned := range a.record.Plan.Steps {
		a.steps = append(a.steps, a.newStepState(planned, a.kind.changes(planned)))
	}
	for _, planned := range a.record.Plan.Undo {
		// The gate is for the plan's steps, not for undoing them.
		a.undo = append(a.undo, a.newStepState(planned, false))
	}
}

// newStepState makes the run's view of a step.
func (a *run) newStepState(planned journal.PlannedStep, changes bool) *stepState {
	planned = a.guarded(a.kind, a.record, planned)
	code, _ := a.kind.step(planned.Does)
	progress := a.record.Steps[planned.ID]
	step := &stepState{
		planned: planned, code: code, group: a.groupFor(planned, code, changes),
		attempt: progress.Attempts, next: progress.NextTry,
		exhausted: a.record.Stalled != nil && !a.kind.RetriesStalled && (startedBefore(progress) || progress.LastError != "") &&
			!progress.Open && !progress.Done() && progress.NextTry.IsZero(),
	}
	a.byID[planned.ID] = step
	return step
}

// groupFor returns the group of a step. The group is held if the record holds the step, except with HoldNextAttempt: such
// a step is tried again.
func (a *run) groupFor(planned journal.PlannedStep, code StepDef, changes bool) *group {
	mustFinish := a.mayHaveToFinish(planned, code)
	key := fmt.Sprint(changes, mustFinish, planned.Irreversible, planned.Preflights, planned.Domains)
	if a.groups[key] == nil {
		a.groups[key] = &group{changes: changes, mustFinish: mustFinish, irreversible: planned.Irreversible, domains: planned.Domains}
	}
	if hold, held := a.record.Holds[planned.ID]; held && hold.Preflight != HoldNextAttempt {
		a.groups[key].heldStep = planned.ID
	}
	return a.groups[key]
}

// progress returns the step's part of the record.
func (a *run) progress(s *stepState) journal.StepRecord { return a.record.Steps[s.planned.ID] }

// startedBefore reports whether the step's effect may have happened. A retry resets the attempts to 0, but StartedAt
// stays.
func startedBefore(progress journal.StepRecord) bool {
	return progress.Attempts > 0 || !progress.StartedAt.IsZero()
}

// ready reports whether the step may start after its backoff: it is not busy, exhausted or done, and the steps before it
// are done.
func (a *run) ready(s *stepState) bool {
	if s.busy || s.exhausted || a.progress(s).Done() {
		return false
	}
	for _, id := range s.planned.After {
		if !a.record.Steps[id].Done() {
			return false
		}
	}
	return true
}

func (a *run) allDone() bool {
	for _, s := range a.steps {
		if !a.progress(s).Done() {
			return false
		}
	}
	return true
}

func (a *run) busySteps() int {
	busy := 0
	for _, s := range a.byID {
		if s.busy {
			busy++
		}
	}
	return busy
}

// contextFor returns the step's view of the action as it is now.
func (a *run) contextFor(planned journal.PlannedStep) StepContext {
	if a.shared == nil {
		shared := snapshot(a.record)
		a.shared = &shared
	}
	return StepContext{Action: *a.shared, Planned: planned, Log: a.log.With("step", planned.ID), watcher: a.cfg.Watcher}
}

// earlier returns the earlier of two times, where zero means never.
func earlier(x, y time.Time) time.Time {
	if x.IsZero() || (!y.IsZero() && y.Before(x)) {
		return y
	}
	return x
}

func later(x, y time.Time) time.Time {
	if x.Before(y) {
		return y
	}
	return x
}
