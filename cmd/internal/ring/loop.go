package ring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// decideAgain is how long the loop waits after it could not write down what it
// decided.
const decideAgain = time.Second

// writeAgain is how often the loop tries whether a journal that could not be
// written can be written again.
const writeAgain = 5 * time.Second

// tryToWrite appends that EKCO observes, which is news after a time in which it
// could not record what it saw: settling begins anew with it.
func (r *Ring) tryToWrite(ctx context.Context) time.Duration {
	if time.Since(r.triedToWrite) < writeAgain || !r.deciding {
		return writeAgain
	}
	r.triedToWrite = time.Now()
	if _, err := r.store.Append(ctx, r.announcement(nil)); err != nil {
		r.log.Debug("the journal still cannot be written", "error", err)
		return writeAgain
	}
	return 0
}

// follow wakes the loop whenever something was appended, by whomever.
func (r *Ring) follow(ctx context.Context, after uint64, fatal chan<- error) {
	for _, err := range r.cfg.Store.Follow(ctx, after) {
		if err != nil {
			fatal <- fmt.Errorf("follow the journal: %w", err)
			return
		}
		r.wakeLoop()
	}
}

func (r *Ring) wakeLoop() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop is the one goroutine that owns the folded state.
func (r *Ring) loop(ctx context.Context, fatal chan<- error) {
	defer close(r.loopEnded)
	r.running.Store(true)
	defer r.running.Store(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.NewTicker(lookAtClock)
	defer look.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case question := <-r.questions:
			if err = r.answer(ctx, question); err == nil {
				continue
			}
		case command := <-r.commands:
			err = r.answer(ctx, command)
		case <-look.C:
			if !r.drifted() {
				continue
			}
		case ended := <-r.finished:
			r.workerEnded(ended)
		case <-r.wake:
		case <-timer.C:
		}
		next := time.Duration(0)
		if err == nil {
			next, err = r.turn(ctx)
		}
		if err != nil {
			fatal <- err
			return
		}
		if r.adrift == nil && r.store.trouble() != nil {
			next = min(next, r.tryToWrite(ctx))
		}
		timer.Reset(next)
	}
}

// answer runs what somebody asked the loop for, by the clock as it is now.
func (r *Ring) answer(ctx context.Context, f func(*fsm.State)) error {
	err := r.followClock(ctx)
	f(r.state)
	return err
}

// idle is how long the loop sleeps when no deadline is known.
const idle = time.Hour

// turn folds what is new, decides until there is nothing left to decide, and
// returns how long the loop may sleep.
func (r *Ring) turn(ctx context.Context) (time.Duration, error) {
	if err := errors.Join(r.catchUp(ctx), r.followClock(ctx)); err != nil {
		return 0, err
	}
	if r.adrift != nil {
		return decideAgain, nil //nolint:nilerr // nothing is decided until the jump is on record, which is tried again
	}
	for r.deciding {
		decisions := fsm.Decide(r.state, r.cfg.Policy, r.clock.Now())
		if len(decisions.Events) == 0 {
			r.afterTurn(ctx)
			return r.sleepUntil(decisions.Next), nil
		}
		if _, err := r.store.Append(ctx, decisions.Events...); err != nil {
			r.log.Warn("cannot write down decisions; nothing is done until that works",
				"events", len(decisions.Events), "error", err)
			return decideAgain, nil
		}
		if err := r.catchUp(ctx); err != nil {
			return 0, err
		}
	}
	r.afterTurn(ctx)
	return idle, nil
}

func (r *Ring) sleepUntil(next time.Time) time.Duration {
	if next.IsZero() {
		return idle
	}
	return min(max(next.Sub(r.clock.Now()), 0), idle)
}

// catchUp folds every event that the state has not seen.
func (r *Ring) catchUp(ctx context.Context) error {
	for event, err := range r.cfg.Store.Read(ctx, journal.Query{After: r.state.Seq}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("read the journal after event %d: %w", r.state.Seq, err)
		}
		r.take(event.Decoded())
	}
	return nil
}

// take folds one event, and hands it on to those who look at each.
func (r *Ring) take(event journal.Decoded) {
	r.state.ApplyDecoded(event)
	delete(r.unrecorded, event.Action)
	r.cfg.Metrics.Folded(event)
	r.progress.ended(event)
	r.noteBegun(event)
	if !r.cfg.Policy.DryRun {
		r.events.record(event)
	}
	r.logEvent(event)
	r.signalWorkers(event)
	r.unmirrored = r.unmirrored || ofPeople(event.Type)
}

// afterTurn passes the new state on to those who act on it.
func (r *Ring) afterTurn(ctx context.Context) {
	if !r.deciding {
		return
	}
	r.startWorkers()
	r.callNext()
	r.observers.Follow(things(r.state))
	if r.mirrors() {
		r.mirror.Update(r.state.OpenActions(), r.state.Journal.ClusterUID, r.state.Carried())
		r.refreshMirror()
	}
	r.cfg.Metrics.State(fsm.Look(r.state, r.cfg.Policy, r.clock.Now()))
	if r.state.Seq-r.lastSaved >= r.cfg.SnapshotEvery {
		r.saveSnapshot(ctx)
	}
}

// mirrors says whether the mirror is this ring's to write: a dry run writes
// nothing, a ring for one command nothing before it was asked for something, and
// in safe mode the mirror may know what the journal does not.
func (r *Ring) mirrors() bool {
	return !r.cfg.Policy.DryRun && (!r.cfg.forCommand() || len(r.admitted) > 0) && !r.state.Journal.SafeMode()
}

// refreshMirror has the mirror cover what people have said, so that a journal
// that loses a pause is noticed as one that loses an action.
func (r *Ring) refreshMirror() {
	if r.unmirrored {
		r.mirror.Refresh()
	}
	r.unmirrored = false
}

// ofPeople names the events that only people bring forth, and that nothing in the
// cluster tells of.
func ofPeople(event journal.Type) bool {
	switch event {
	case journal.TypePauseSet, journal.TypePauseCleared, journal.TypeJournalAccepted:
		return true
	}
	return false
}

// saveSnapshot keeps the folded state, so that the next start is quick. Losing
// one costs only time, so a failure is a warning.
func (r *Ring) saveSnapshot(ctx context.Context) {
	r.lastSaved = r.state.Seq
	snapshot, err := r.state.Snapshot()
	if err == nil {
		err = r.cfg.Store.SaveSnapshot(ctx, snapshot)
	}
	if err != nil {
		r.log.Warn("cannot save a snapshot; the next start replays more events", "error", err)
	}
}
