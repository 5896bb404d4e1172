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

// maxConcurrent limits how many steps of one action run at the same time.
const maxConcurrent = 16

// run is one call of Runner.Run. One goroutine, the owner, owns every field. Slow calls run in other goroutines. Each
// of them returns a function that applies its result, and the owner calls this function; see [run.startAsync].
//
// The owner works in turns. In each turn it applies the results, decides what comes next, writes all of that to disk in
// one append, and only then starts new work.
type run struct {
	*Runner
	log    *slog.Logger
	kind   *Kind
	record journal.ActionRecord

	// ctx is the caller's context. looking is for checks, and also ends when the action ends early. work is for effects
	// and the journal, and ends Config.Grace after ctx.
	ctx         context.Context
	looking     context.Context
	stopLooking context.CancelFunc
	work        context.Context
	stopWork    context.CancelFunc
	// interruptible is for interruptible effects. It ends at once when the action ends early or EKCO stops.
	interruptible     context.Context
	stopInterruptible context.CancelFunc

	results chan func()
	// notes receives notes of running steps. noted has the notes that this turn appends.
	notes    chan stepNote
	noted    []stepNote
	inFlight int
	// drafts has the events that this turn appends. launches has the work that it starts after the append.
	drafts   []journal.Draft
	launches []func()

	steps []*stepState
	// undo are the plan's undo steps.
	undo   []*stepState
	byID   map[string]*stepState
	groups map[string]*group
	// reasons records when the reasons of holds were last recorded, by step.
	reasons map[string]recordedReason
	// lastingVerdicts has the verdicts that must last before they take effect.
	lastingVerdicts lastingVerdicts
	// shared is the copy of the record that steps read, nil if the record has changed since.
	shared *journal.ActionRecord
	// unfitReason is the reason why this EKCO must not run the action, or nil.
	unfitReason error

	// gate has the preflights of the plan's gate. gatePassed is when they last let steps of this run start.
	gate       []string
	gatePassed time.Time

	planning checkState
	// pendingChecks are the running checks.
	pendingChecks []*pendingCheck
	// stalledSeq is the event by which this run stalled the action last, or 0.
	stalledSeq uint64
	// resumed is true if an earlier run planned the action. deferred is true after a hold by a preflight for which the
	// plan lets the step wait without limit; see [run.isAttended].
	resumed, deferred bool
	cancel            bool
	// ending is set if the action ends before its steps are done.
	ending *journal.ActionEnded
	// undoing is true while the undo steps run.
	undoing  bool
	stopping bool
}

// checkState records when to check a group, a step or the planning again.
type checkState struct {
	busy bool
	// again is true if another check must follow the running one.
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
		log:             r.cfg.Log.With("action", record.ID, "kind", record.Kind, "object", record.Subject.Name),
		ctx:             ctx,
		results:         make(chan func()),
		notes:           make(chan stepNote),
		byID:            make(map[string]*stepState),
		groups:          make(map[string]*group),
		reasons:         make(map[string]recordedReason),
		lastingVerdicts: make(lastingVerdicts),
		cancel:          record.Cancelling != nil,
		resumed:         record.Planned,
		unfitReason:     checkFit(record, kind),
	}
	if record.Planned && a.unfitReason == nil {
		a.takePlan()
	}
	for step := range record.Holds {
		a.reasons[step] = recordedReason{at: time.Now()}
	}
	return a
}

// checkFit returns an error if this EKCO must not run the action.
func checkFit(record journal.ActionRecord, kind *Kind) error {
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
	a.interruptible, a.stopInterruptible = context.WithCancel(a.work)
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
			// A cancel that arrived before the result must prevent the step that the result would start.
			a.readInbox(inbox)
			a.applyResults(apply)
		case n := <-a.notes:
			a.takeNote(n)
		case <-inbox.woken():
			a.readInbox(inbox)
		case <-timer.C:
		case <-stop:
			a.stopping, stop = true, nil
			a.stopInterruptible()
			grace = time.After(a.cfg.Grace)
		case <-grace:
			a.stopWork()
		}
	}
}

// maxIdleTurn is the longest turn when the action only waits for events from other writers.
const maxIdleTurn = time.Hour

func untilWake(wake time.Time) time.Duration {
	if wake.IsZero() {
		return maxIdleTurn
	}
	return min(max(time.Until(wake), 0), maxIdleTurn)
}

// startAsync runs f in a goroutine; the owner calls the function that f returns.
func (a *run) startAsync(f func() func()) {
	a.inFlight++
	go func() { a.results <- f() }()
}

// linger is how long a turn waits for more results to write in the same append. Steps that start together often end
// together, and one append takes longer than linger.
const linger = 2 * time.Millisecond

// applyResults applies a result, and further results that arrive within linger.
func (a *run) applyResults(apply func()) {
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

// abandonWork stops all running work, waits until it ends, and drops the results.
func (a *run) abandonWork() {
	a.stopWork()
	a.stopInterruptible()
	a.stopLooking()
	for ; a.inFlight > 0; a.inFlight-- {
		<-a.results
	}
}

// draftEvent drafts an event of the action and folds it.
func (a *run) draftEvent(cause uint64, kind journal.Type, payload journal.Payload) {
	a.drafts = append(a.drafts, journal.Draft{
		Type: kind, Subject: a.record.Subject, Action: a.record.ID,
		Cause: cause, Actor: a.cfg.Actor, Payload: payload,
	})
	a.foldEvent(journal.Event{Seq: a.record.LastSeq, Time: time.Now(), Actor: a.cfg.Actor}, payload)
}

// foldEvent folds an event into the record. An error means that the journal has an event that does not fit; the loop
// reports that error.
func (a *run) foldEvent(event journal.Event, payload journal.Payload) {
	if err := a.record.Fold(event, payload); err != nil {
		a.log.Debug("an event does not fit the action's record", "error", err)
	}
	a.shared = nil
}

// commit writes the turn's events to disk, then runs its launches.
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

// cannotWrite returns the error that ends the run. If the grace period ended during the append, it returns ctx's error.
func (a *run) cannotWrite(err error) error {
	if a.stopping && a.work.Err() != nil {
		return a.ctx.Err()
	}
	return &UnrecordedError{Action: a.record.ID, What: unrecordedResults(a.drafts), Err: err}
}
