package actions

import (
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// stepState is the state of a step in a run, in addition to the record.
type stepState struct {
	planned journal.PlannedStep
	code    StepDef
	group   *group
	// before are the ids of all steps that must be done first, direct predecessors and their predecessors. While the
	// first of them is repeated (see [UnfinishedError.RepeatStep]), a step in between may stay done.
	before []string
	// busy is true while EKCO checks or runs the step.
	busy bool
	// exhausted is true if the failure budget is spent.
	exhausted bool
	// next is when a failed step runs again. waits is when EKCO checks a step again that has to wait.
	next  time.Time
	waits checkState
	// waited counts the consecutive attempts that had to wait although the check before them found work.
	waited int
	// attempt is the number of the last attempt. startedSeq is the event that started it, and the cause of the events
	// that follow.
	attempt    int
	startedSeq uint64
}

// group has the steps with the same preflights and domains. EKCO checks them together; if a preflight does not pass,
// all of them wait.
type group struct {
	checkState
	// changes is true if the steps change something; irreversible is true if the change cannot be undone.
	changes, irreversible bool
	// mustFinish is true if each step has a [StepDef.MustFinish], or undoes a step that has one.
	mustFinish bool
	// heldStep is the step under which the group's hold is recorded, or empty.
	heldStep string
	// domains are the domains that each step locks. claimed is the step that waits for or has the locks, or "";
	// waitsFrom is when it began to wait.
	domains   []string
	claimed   string
	waitsFrom time.Time
}

// takePlan creates the states of the planned steps.
func (a *run) takePlan() {
	a.gate = gatePreflights(a.record.Plan)
	for _, planned := range a.record.Plan.Steps {
		a.steps = append(a.steps, a.newStepState(planned, a.kind.changesSomething(planned)))
	}
	for _, planned := range a.record.Plan.Undo {
		// The gate protects the plan's steps, but not the undo steps.
		a.undo = append(a.undo, a.newStepState(planned, false))
	}
}

func (a *run) newStepState(planned journal.PlannedStep, changes bool) *stepState {
	planned = a.withGuards(a.kind, a.record, planned)
	code, _ := a.kind.step(planned.Does)
	progress := a.record.Steps[planned.ID]
	step := &stepState{
		planned: planned, code: code, group: a.groupFor(planned, code, changes),
		attempt: progress.Attempts, next: progress.NextTry,
		exhausted: a.record.Stalled != nil && !a.kind.RetriesStalled && (startedBefore(progress) || progress.LastError != "") &&
			!progress.Open && !progress.Done() && progress.NextTry.IsZero(),
	}
	for _, id := range planned.After {
		step.before = append(step.before, id)
		if earlier := a.byID[id]; earlier != nil {
			step.before = append(step.before, earlier.before...)
		}
	}
	slices.Sort(step.before)
	step.before = slices.Compact(step.before)
	a.byID[planned.ID] = step
	return step
}

// groupFor returns the group of a step. If the record holds the step, the group is held, too. HoldNextAttempt is an
// exception, because the step only waits to be tried again.
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

func (a *run) stepRecord(s *stepState) journal.StepRecord { return a.record.Steps[s.planned.ID] }

// startedBefore reports whether the step's effect may have happened. It uses StartedAt, because a retry resets the
// attempts to 0.
func startedBefore(progress journal.StepRecord) bool {
	return progress.Attempts > 0 || !progress.StartedAt.IsZero()
}

// isReady reports whether the step may start after its backoff: it is not busy, exhausted or done, and the steps before
// it are done.
func (a *run) isReady(s *stepState) bool {
	if s.busy || s.exhausted || a.stepRecord(s).Done() {
		return false
	}
	return !slices.ContainsFunc(s.before, func(id string) bool { return !a.record.Steps[id].Done() })
}

func (a *run) allDone() bool {
	for _, s := range a.steps {
		if !a.stepRecord(s).Done() {
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

// contextFor returns the step's context with a copy of the present record.
func (a *run) contextFor(planned journal.PlannedStep) StepContext {
	if a.shared == nil {
		shared := snapshot(a.record)
		a.shared = &shared
	}
	return StepContext{Action: *a.shared, Planned: planned, Log: a.log.With("step", planned.ID), watcher: a.cfg.Watcher}
}

// earlier returns the earlier of two times. The zero time means never.
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
