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

// maxConcurrent bounds how many steps of one action are under way.
const maxConcurrent = 16

// run carries one action to its end. The goroutine that called Runner.Run owns
// every field. What may take time runs in goroutines of its own, each of which
// hands back one function for the owner to call; see [run.async].
//
// The owner works in turns: take what came back, decide what comes next, put
// all of it on disk in one append, and only then start what was decided.
type run struct {
	*Runner
	log    *slog.Logger
	kind   *Kind
	record journal.ActionRecord

	// ctx is the caller's. looking ends with it, or once the action is to end
	// early. work outlives it by the grace, for running effects and the journal.
	ctx         context.Context
	looking     context.Context
	stopLooking context.CancelFunc
	work        context.Context
	stopWork    context.CancelFunc
	// going is work as long as the action goes on: what may be cut short ends with it.
	going     context.Context
	stopGoing context.CancelFunc

	results chan func()
	// notes are what steps under way want to be on disk, noted those that this turn appends.
	notes    chan stepNote
	noted    []stepNote
	inFlight int
	// drafts and launches are what this turn appends, and then starts.
	drafts   []journal.Draft
	launches []func()

	steps []*stepState
	// undo are the steps that take others back.
	undo   []*stepState
	byID   map[string]*stepState
	groups map[string]*group
	// said is what was recorded of the reasons of holds, by step.
	said map[string]spoken
	// found are the verdicts that have to last before they count.
	found findings
	// shared is the copy of the record that steps may read, or nil when the
	// record has changed since.
	shared *journal.ActionRecord
	// unfit is why this EKCO must not touch the action, or nil.
	unfit error

	// gate is what the plan asks before anything is destroyed, gatePassed when this
	// run last asked it and was let through.
	gate       []string
	gatePassed time.Time

	planning attention
	// askings are the looks under way.
	askings []*asking
	// stalledSeq is the event by which this run stalled the action last, or 0.
	stalledSeq uint64
	// resumed is set when an earlier run planned the action, deferred once a step
	// was held by what it may wait for; see [run.isAttended].
	resumed, deferred bool
	cancel            bool
	// ending is set once the action shall end before its steps are done.
	ending *journal.ActionEnded
	// undoing is set once what the action did is being taken back.
	undoing  bool
	stopping bool
}

// attention is when to look again at something that did not go well.
type attention struct {
	busy bool
	// again is set when a try that is under way must be followed by another.
	again bool
	tries int
	// brief counts the tries that were put off by something that often takes seconds.
	brief int
	next  time.Time
}

func (r *Runner) newRun(ctx context.Context, record journal.ActionRecord) *run {
	kind := r.kindOf(record)
	a := &run{
		Runner: r, record: r.taken(record), kind: kind,
		log:     r.cfg.Log.With("action", record.ID, "kind", record.Kind, "object", record.Subject.Name),
		ctx:     ctx,
		results: make(chan func()),
		notes:   make(chan stepNote),
		byID:    make(map[string]*stepState),
		groups:  make(map[string]*group),
		said:    make(map[string]spoken),
		found:   make(findings),
		cancel:  record.Cancelling != nil,
		resumed: record.Planned,
		unfit:   unfit(record, kind),
	}
	if record.Planned && a.unfit == nil {
		a.takePlan()
	}
	for step := range record.Holds {
		a.said[step] = spoken{at: time.Now()}
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

// toItsEnd takes turns until the action has ended, ctx has, or the journal
// cannot be written. No goroutine outlives it.
func (a *run) toItsEnd(inbox *Inbox) error {
	a.work, a.stopWork = context.WithCancel(context.WithoutCancel(a.ctx))
	a.going, a.stopGoing = context.WithCancel(a.work)
	a.looking, a.stopLooking = context.WithCancel(a.ctx)
	defer a.abandonWork()
	stop, grace := a.ctx.Done(), (<-chan time.Time)(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wake := earlier(a.decide(), a.tellSlow(time.Now()))
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
			// A cancel that came first must win over the step it would let start.
			a.hear(inbox)
			a.take(apply)
		case n := <-a.notes:
			a.takeNote(n)
		case <-inbox.woken():
			a.hear(inbox)
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

// idle is how long a turn waits when nothing but others can move the action.
const idle = time.Hour

func untilWake(wake time.Time) time.Duration {
	if wake.IsZero() {
		return idle
	}
	return min(max(time.Until(wake), 0), idle)
}

// async runs f in a goroutine; the owner later calls what f returns.
func (a *run) async(f func() func()) {
	a.inFlight++
	go func() { a.results <- f() }()
}

// linger is how long a turn waits for further results to share its append.
// Steps that were started together tend to end together, and one append costs
// more than this.
const linger = 2 * time.Millisecond

// take applies a result, and every other one that comes soon.
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

// abandonWork waits for what is still under way and forgets its results.
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

// fold brings the record up to an event. The journal may hold events that make no
// sense, which the loop reports; the run writes none.
func (a *run) fold(event journal.Event, payload journal.Payload) {
	if err := a.record.Fold(event, payload); err != nil {
		a.log.Debug("an event does not fit the action's record", "error", err)
	}
	a.shared = nil
}

// commit puts the turn's events on disk, then starts what they announce.
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

// cannotWrite names the error that ends the run. When the grace ran out while
// appending, the reason is that somebody asked to stop.
func (a *run) cannotWrite(err error) error {
	if a.stopping && a.work.Err() != nil {
		return a.ctx.Err()
	}
	return &UnrecordedError{Action: a.record.ID, What: happened(a.drafts), Err: err}
}
