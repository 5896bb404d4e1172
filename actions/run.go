package actions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// maxConcurrent bounds how many steps of one action run at the same time.
const maxConcurrent = 16

// run is one call of Runner.Run, whose goroutine, the owner, owns every field. Slow calls run in goroutines of their
// own. Each of these returns one function, which the owner calls; see [run.async].
//
// The owner works in turns: apply the results, decide what comes next, put all of it on disk in one append, and only
// then start it.
type run struct {
	*Runner
	log    *slog.Logger
	kind   *Kind
	record journal.ActionRecord

	// ctx is the caller's. looking is for checks; it also ends when the action ends early. work is for effects and the
	// journal; it ends Config.Grace after ctx.
	ctx         context.Context
	looking     context.Context
	stopLooking context.CancelFunc
	work        context.Context
	stopWork    context.CancelFunc
	// going is for interruptible effects: it ends at once when the action ends early or EKCO stops.
	going     context.Context
	stopGoing context.CancelFunc

	results chan func()
	// notes are notes of running steps; noted are those that this turn appends.
	notes    chan stepNote
	noted    []stepNote
	inFlight int
	// drafts are what this turn appends; launches are what it starts after that.
	drafts   []journal.Draft
	launches []func()

	steps []*stepState
	// undo are the plan's undo steps.
	undo   []*stepState
	byID   map[string]*stepState
	groups map[string]*group
	// reasons says when the reasons of holds were last recorded, by step.
	reasons map[string]recordedReason
	// found are the verdicts that must last before they count.
	found findings
	// shared is the copy of the record that steps read, nil if the record has changed since.
	shared *journal.ActionRecord
	// unfit is why this EKCO must not touch the action, or nil.
	unfit error

	// gate are the preflights of the plan's gate; gatePassed is when they last let steps of this run start.
	gate       []string
	gatePassed time.Time

	planning checkState
	// pendingChecks are the running checks.
	pendingChecks []*pendingCheck
	// stalledSeq is the event by which this run stalled the action last, or 0.
	stalledSeq uint64
	// resumed is set when an earlier run planned the action; deferred is set when a step was held by a preflight for
	// which it may wait; see [run.isAttended].
	resumed, deferred bool
	cancel            bool
	// ending is set when the action ends before its steps are done.
	ending *journal.ActionEnded
	// undoing is set while the undo steps run.
	undoing  bool
	stopping bool
}

// checkState is when to check a group, a step or the planning again.
type checkState struct {
	busy bool
	// again is set when another check must follow the running one.
	again bool
	tries int
	// brief counts the checks with a [Verdict.Briefly] hold.
	brief int
	next  time.Time
}

func (r *Runner) newRun(ctx context.Context, record journal.ActionRecord) *run {
	kind := r.kindFor(record)
	a := &run{
		Runner: r, record: r.localTimes(record), kind: kind,
		log:     r.cfg.Log.With("action", record.ID, "kind", record.Kind, "object", record.Subject.Name),
		ctx:     ctx,
		results: make(chan func()),
		notes:   make(chan stepNote),
		byID:    make(map[string]*stepState),
		groups:  make(map[string]*group),
		reasons: make(map[string]recordedReason),
		found:   make(findings),
		cancel:  record.Cancelling != nil,
		resumed: record.Planned,
		unfit:   unfit(record, kind),
	}
	if record.Planned && a.unfit == nil {
		a.takePlan()
	}
	for step := range record.Holds {
		a.reasons[step] = recordedReason{at: time.Now()}
	}
	return a
}

// unfit returns an error if this EKCO must not touch the action.
func unfit(record journal.ActionRecord, kind *Kind) error {
	switch {
	case record.Unreadable != "":
		return errors.New("this EKCO cannot read the action: " + record.Unreadable)
	case kind == nil:
		return fmt.Errorf("this EKCO does not know actions of kind %q", record.Kind)
	case record.Planned:
		return unfitPlan(record, kind)
	}
	return nil
}

func unfitPlan(record journal.ActionRecord, kind *Kind) error {
	if err := checkPlan(record.Plan); err != nil {
		return fmt.Errorf("run the plan: %w", err)
	}
	for _, step := range slices.Concat(record.Plan.Steps, record.Plan.Undo) {
		if _, known := kind.step(step.Does); !known && !record.Steps[step.ID].Done() {
			return fmt.Errorf("this EKCO does not know what step %q does (%s)", step.ID, step.Does)
		}
		progress := record.Steps[step.ID]
		if progress.Done() && len(progress.Outputs) == 0 && slices.Contains(kind.Needed, step.Does) && !record.Request.DryRun {
			return fmt.Errorf("step %q is done, but its outputs, which later steps need, are missing in the mirror from which EKCO took the action over. "+
				"Start the EKCO that has the former journal, or finish the plan by hand", step.ID)
		}
	}
	return nil
}

// runToEnd takes turns until the action ends, ctx ends, or the journal cannot be written. No goroutine outlives it.
func (a *run) runToEnd(inbox *Inbox) error {
	a.work, a.stopWork = context.WithCancel(context.WithoutCancel(a.ctx))
	a.going, a.stopGoing = context.WithCancel(a.work)
	a.looking, a.stopLooking = context.WithCancel(a.ctx)
	defer a.abandonWork()
	stop, grace := a.ctx.Done(), (<-chan time.Time)(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wake := earlier(a.decide(), a.holdSlow(time.Now()))
		if err := a.commit(); err != nil {
			return err
		}
		switch {
		case a.record.Ended != nil:
			return nil
		case a.stopping && a.inFlight == 0:
			return a.ctx.Err()
		}
		timer.Reset(untilWake(wake))
		select {
		case apply := <-a.results:
			// A cancel that came before the result must stop the step that the result would start.
			a.readInbox(inbox)
			a.take(apply)
		case n := <-a.notes:
			a.takeNote(n)
		case <-inbox.woken():
			a.readInbox(inbox)
		case <-timer.C:
		case <-stop:
			a.stopping, stop = true, nil
			a.stopGoing()
			grace = time.After(a.cfg.Grace)
		case <-grace:
			a.stopWork()
		}
	}
}

// idle is how long a turn waits at most when the action only waits for events of others.
const idle = time.Hour

func untilWake(wake time.Time) time.Duration {
	if wake.IsZero() {
		return idle
	}
	return min(max(time.Until(wake), 0), idle)
}

// async runs f in a goroutine; the owner calls the function that f returns.
func (a *run) async(f func() func()) {
	a.inFlight++
	go func() { a.results <- f() }()
}

// linger is how long a turn waits for more results to put into the same append. Steps that start together often end
// together, and an append takes longer than this.
const linger = 2 * time.Millisecond

// take applies a result, and others that arrive within linger.
func (a *run) take(apply func()) {
	soon := time.NewTimer(linger)
	defer soon.Stop()
	for {
		a.inFlight--
		apply()
		if a.inFlight == 0 {
			return
		}
		select {
		case apply = <-a.results:
		case <-soon.C:
			return
		}
	}
}

// abandonWork stops everything that is running, waits for it, and drops the results.
func (a *run) abandonWork() {
	a.stopWork()
	a.stopGoing()
	a.stopLooking()
	for ; a.inFlight > 0; a.inFlight-- {
		<-a.results
	}
}

// note drafts an event of the action and folds it.
func (a *run) note(cause uint64, kind journal.Type, payload journal.Payload) {
	a.drafts = append(a.drafts, journal.Draft{
		Type: kind, Subject: a.record.Subject, Action: a.record.ID,
		Cause: cause, Actor: a.cfg.Actor, Payload: payload,
	})
	a.fold(journal.Event{Seq: a.record.LastSeq, Time: time.Now(), Actor: a.cfg.Actor}, payload)
}

// fold folds an event into the record. The run writes no event that does not fit; if the journal has one, the loop
// reports it.
func (a *run) fold(event journal.Event, payload journal.Payload) {
	if err := a.record.Fold(event, payload); err != nil {
		a.log.Debug("an event does not fit the action's record", "error", err)
	}
	a.shared = nil
}

// commit puts the turn's events on disk, then runs its launches.
func (a *run) commit() error {
	if len(a.drafts) > 0 {
		events, err := a.cfg.Store.Append(a.work, a.drafts...)
		if err != nil {
			return a.cannotWrite(err)
		}
		for i, event := range events {
			a.committed(a.drafts[i].Payload, event.Seq)
		}
	}
	a.answerNotes()
	launches := a.launches
	a.drafts, a.launches = nil, nil
	for _, launch := range launches {
		launch()
	}
	return nil
}

func (a *run) committed(payload journal.Payload, seq uint64) {
	a.record.LastSeq = seq
	switch p := payload.(type) {
	case *journal.StepStarted:
		a.byID[p.Step].startedSeq = seq
	case *journal.ActionStalled:
		a.stalledSeq = seq
	}
	a.logEvent(payload)
}

// cannotWrite returns the error that ends the run. If the grace period ended during the append, that is ctx's error.
func (a *run) cannotWrite(err error) error {
	if a.stopping && a.work.Err() != nil {
		return a.ctx.Err()
	}
	return &UnrecordedError{Action: a.record.ID, What: happened(a.drafts), Err: err}
}
