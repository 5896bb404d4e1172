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
	// busy is set while the step is looked at or under way.
	busy bool
	// exhausted is set when the budget is spent.
	exhausted bool
	// next is when a step that failed is tried again, waits when one of which all that
	// is left has to wait is looked at again.
	next  time.Time
	waits attention
	// waited is how many attempts in a row had to wait though the look before them saw
	// something to do.
	waited int
	// attempt is the number of the last attempt, startedSeq the event that
	// started it, which is the cause of what follows.
	attempt    int
	startedSeq uint64
}

// group is the steps that share one list of preflights, and what they may change. They
// are looked at together and, when a preflight holds, wait together.
type group struct {
	attention
	// changes is set when its steps change something, irreversible when that cannot
	// be undone.
	changes, irreversible bool
	// mustFinish is set when each of its steps has a [StepDef.MustFinish], or undoes one that has.
	mustFinish bool
	// heldStep is the step under which the group's hold is recorded, or empty.
	heldStep string
	// domains are what each of its steps takes; claimed is the step under which they
	// were asked for, or empty, waitsFrom since when that has to wait.
	domains   []string
	claimed   string
	waitsFrom time.Time
}

// takePlan makes the run's view of the record's plan.
func (a *run) takePlan() {
	a.gate = gateOf(a.record.Plan)
	for _, planned := range a.record.Plan.Steps {
		a.steps = append(a.steps, a.stepOf(planned, a.kind.changes(planned)))
	}
	for _, planned := range a.record.Plan.Undo {
		// The gate is about what begins, not about the way back.
		a.undo = append(a.undo, a.stepOf(planned, false))
	}
}

// stepOf makes the run's view of a step.
func (a *run) stepOf(planned journal.PlannedStep, changes bool) *stepState {
	planned = a.guarded(a.kind, a.record, planned)
	code, _ := a.kind.step(planned.Does)
	progress := a.record.Steps[planned.ID]
	step := &stepState{
		planned: planned, code: code, group: a.groupOf(planned, code, changes),
		attempt: progress.Attempts, next: progress.NextTry,
		exhausted: a.record.Stalled != nil && !a.kind.RetriesStalled && (startedBefore(progress) || progress.LastError != "") &&
			!progress.Open && !progress.Done() && progress.NextTry.IsZero(),
	}
	a.byID[planned.ID] = step
	return step
}

// groupOf returns the group of a step, which waits if the step is on record as
// held, unless it is tried all the same.
func (a *run) groupOf(planned journal.PlannedStep, code StepDef, changes bool) *group {
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

// startedBefore reports whether the step's effect may have happened. A retry
// counts attempts from 0 again, but the first start stays on record.
func startedBefore(progress journal.StepRecord) bool {
	return progress.Attempts > 0 || !progress.StartedAt.IsZero()
}

// ready reports whether the step may start as far as other steps and its own
// past are concerned, time aside.
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

// contextOf returns what the step may know now.
func (a *run) contextOf(planned journal.PlannedStep) StepContext {
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
