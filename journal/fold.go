package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Only this file defines how the events of an action change its record. The loop applies events that are on disk. A
// runner of an action applies events right before it appends them.

// OpenedBy returns the record of the action that e requests. Package fsm then sets the status.
func OpenedBy(e Event, p *ActionRequested) ActionRecord {
	return ActionRecord{
		ID: e.Action, Kind: p.Kind, Subject: e.Subject,
		RequestedBy: e.Actor, RequestedAt: e.Time, Request: *p, LastSeq: e.Seq,
	}
}

// Adopted returns the record for the journal that takes over the action with event e. Failures in the former journal no
// longer count against the retry budget.
func (r ActionRecord) Adopted(e Event) ActionRecord {
	steps := make(map[string]StepRecord, len(r.Steps))
	for id, step := range r.Steps {
		step.Failures = 0
		steps[id] = step
	}
	if r.Steps != nil {
		r.Steps = steps
	}
	r.LastSeq = e.Seq
	return r
}

// Fold applies event e to the record. p is the payload of e, a pointer as [Event.Decode] returns it. A payload that is
// not about an open action changes only LastSeq. The error describes the parts of e that contradict the record; Fold
// applies the other parts.
//
// Fold does not change the status. It changes the record's maps in place, so a copy of the record sees these changes.
func (r *ActionRecord) Fold(e Event, p Payload) error {
	r.LastSeq = e.Seq
	switch p := p.(type) {
	case *ActionPlanned:
		if r.Planned {
			return fmt.Errorf("action %s already has a plan", r.ID)
		}
		r.Planned, r.Plan = true, p.Plan
	case *ActionHeld:
		r.foldHeld(e, p)
	case *ActionReleased:
		r.removeHold(p.Step)
	case *ActionLeft:
		setEntry(&r.Left, p.What, p.Reason)
	case *ActionWarned:
		r.foldWarned(e, p)
	case *ActionStalled:
		r.Stalled, r.StalledAt = p, e.Time
	case *ActionRetried:
		r.foldRetried(p)
	case *ActionJoined:
		r.Joined = true
	case *ActionCancelling:
		r.foldCancelling(e, p)
	case *ActionEnded:
		r.Ended, r.EndedAt = p, e.Time
	default:
		return r.foldStep(e, p)
	}
	return nil
}

func (r *ActionRecord) foldStep(e Event, p Payload) error {
	switch p := p.(type) {
	case *StepStarted:
		return r.foldStarted(e, p)
	case *StepNoted:
		return r.foldNoted(p)
	case *StepDone:
		return r.foldDone(e, p)
	case *StepFailed:
		return r.foldFailed(p)
	}
	return nil
}

// foldHeld sets the hold of a step. It keeps HeldSince if the same preflight already held the step.
func (r *ActionRecord) foldHeld(e Event, p *ActionHeld) {
	if before, held := r.Holds[p.Step]; !held || before.Preflight != p.Preflight {
		setEntry(&r.HeldSince, p.Step, e.Time)
	}
	setEntry(&r.Holds, p.Step, *p)
}

// removeHold removes the hold of a step, if there is one.
func (r *ActionRecord) removeHold(step string) {
	delete(r.Holds, step)
	delete(r.HeldSince, step)
}

// removeHolds removes all holds of the action, and its stall.
func (r *ActionRecord) removeHolds() {
	r.Stalled, r.StalledAt, r.Holds, r.HeldSince = nil, time.Time{}, nil, nil
}

// maxWarned is the maximum number of warnings kept for one action.
const maxWarned = 32

// foldWarned keeps each warning once for each actor who received it, the newest last.
func (r *ActionRecord) foldWarned(e Event, p *ActionWarned) {
	warning := Warning{Preflight: p.Preflight, Key: p.Key, Text: p.Warning, Actor: e.Actor, At: e.Time}
	warned := append(slices.DeleteFunc(slices.Clone(r.Warned), warning.repeats), warning)
	if len(warned) > maxWarned {
		at := indexToDrop(warned)
		warned = slices.Delete(warned, at, at+1)
	}
	r.Warned = warned
}

// indexToDrop returns the index of the warning to drop: the oldest with the preflight and key of the newest warning or,
// if there is none, the oldest of all. So a warning whose text keeps changing does not displace others.
func indexToDrop(warned []Warning) int {
	return max(0, slices.IndexFunc(warned, func(w Warning) bool {
		last := warned[len(warned)-1]
		return w != last && w.Preflight == last.Preflight && w.Key == last.Key
	}))
}

// foldRetried resets the attempts of every step that is not done, so that its next attempt is due at once.
func (r *ActionRecord) foldRetried(p *ActionRetried) {
	if p.Force {
		r.Forced = r.forced(p.List)
	}
	r.removeHolds()
	for id, step := range r.Steps {
		if !step.Done() {
			step.Attempts, step.Failures, step.NextTry = 0, 0, time.Time{}
			r.Steps[id] = step
		}
	}
}

// forced returns the holds in Forced and the present holds that a forced retry with this list overrides: the holds
// whose reason is the list or, if list is "", is no list.
func (r *ActionRecord) forced(list string) []Forced {
	forced := slices.Clone(r.Forced)
	for _, held := range r.Holds {
		if held.ListKey() == list {
			forced = append(forced, Forced{held.Preflight, held.Key})
		}
	}
	slices.SortFunc(forced, func(a, b Forced) int {
		return cmp.Or(strings.Compare(a.Preflight, b.Preflight), strings.Compare(a.Key, b.Key))
	})
	return slices.Compact(forced)
}

// foldCancelling removes all holds, because a cancelled action runs no further planned steps.
func (r *ActionRecord) foldCancelling(e Event, p *ActionCancelling) {
	if r.PastNoReturn {
		return
	}
	r.Cancelling, r.CancellingBy = p, e.Actor
	r.removeHolds()
}

// foldStarted removes the step's hold, except [HoldNextAttempt]. If the step is irreversible, it also removes a
// cancellation, which came too late.
func (r *ActionRecord) foldStarted(e Event, p *StepStarted) error {
	if r.Holds[p.Step].Preflight != HoldNextAttempt {
		r.removeHold(p.Step)
	}
	r.removeHold("")
	step := r.Steps[p.Step]
	if step.StartedAt.IsZero() {
		step.StartedAt = e.Time
	}
	step.Attempts, step.Open, step.NextTry = p.Attempt, true, time.Time{}
	planned, is := r.Plan.Step(p.Step)
	step.startKeepingLocks(planned, e.Time)
	setEntry(&r.Steps, p.Step, step)
	if !is {
		return r.notPlanned(p.Step)
	}
	if planned.Irreversible {
		r.PastNoReturn, r.Cancelling, r.CancellingBy = true, nil, ""
	}
	return nil
}

func (r *ActionRecord) foldNoted(p *StepNoted) error {
	step := r.Steps[p.Step]
	step.Outputs = p.Outputs
	if p.Progress {
		step.Failures = 0
	}
	setEntry(&r.Steps, p.Step, step)
	return r.notPlanned(p.Step)
}

func (r *ActionRecord) foldDone(e Event, p *StepDone) error {
	r.removeHold(p.Step)
	step := r.Steps[p.Step]
	step.Attempts, step.DoneAt, step.Outputs = max(step.Attempts, p.Attempt), e.Time, p.Outputs
	step.Open, step.Failures, step.LastError, step.NextTry, step.Worse, step.WorseError = false, 0, "", time.Time{}, false, ""
	setEntry(&r.Steps, p.Step, step)
	return r.notPlanned(p.Step)
}

func (r *ActionRecord) foldFailed(p *StepFailed) error {
	step := r.Steps[p.Step]
	step.Attempts = max(step.Attempts, p.Attempt)
	if !p.Waits {
		step.Failures++
	}
	if p.Worse && !p.Waits {
		step.Worse, step.WorseError = true, p.Error
	}
	step.Open, step.LastError, step.NextTry = false, p.Error, p.NextTry
	if len(p.Outputs) > 0 {
		step.Outputs = p.Outputs
	}
	setEntry(&r.Steps, p.Step, step)
	if p.Again != "" {
		again := r.Steps[p.Again]
		again.DoneAt, again.Outputs = time.Time{}, nil
		setEntry(&r.Steps, p.Again, again)
	}
	return r.notPlanned(p.Step)
}

// notPlanned returns an error if the plan does not have the step.
func (r *ActionRecord) notPlanned(step string) error {
	if _, is := r.Plan.Step(step); is {
		return nil
	}
	return fmt.Errorf("the plan of %s has no step %q", r.ID, step)
}

// setEntry sets an entry of a map, and creates the map if necessary.
func setEntry[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}
