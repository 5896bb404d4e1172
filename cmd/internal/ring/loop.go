package ring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// decideRetryInterval is how long the loop waits after it could not record its decisions.
const decideRetryInterval = time.Second

// writeRetryInterval is the interval at which the loop retries to write to an unwritable journal.
const writeRetryInterval = 5 * time.Second

// tryToWrite appends another operator.started, so that settling begins again after a time in which EKCO could not
// record facts.
func (r *Ring) tryToWrite(ctx context.Context) time.Duration {
	if time.Since(r.triedToWrite) < writeRetryInterval || !r.deciding {
		return writeRetryInterval
	}
	r.triedToWrite = time.Now()
	if _, err := r.store.Append(ctx, r.startedDraft(nil)); err != nil {
		r.log.Debug("the journal still cannot be written", "error", err)
		return writeRetryInterval
	}
	return 0
}

// follow wakes the loop after each append to the journal by any goroutine.
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

// loop runs in the goroutine that owns the folded state.
func (r *Ring) loop(ctx context.Context, fatal chan<- error) {
	defer close(r.loopEnded)
	r.running.Store(true)
	defer r.running.Store(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	check := time.NewTicker(clockCheckInterval)
	defer check.Stop()
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
		case <-check.C:
			if _, err := r.store.Stat(ctx); err != nil {
				r.log.Debug("the journal's state cannot be read", "error", err)
			}
			if !r.hasClockDrifted() && r.store.trouble() == nil {
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
		if r.unrecordedJump == nil && r.store.trouble() != nil {
			next = min(next, r.tryToWrite(ctx))
		}
		timer.Reset(next)
	}
}

// answer checks the clock, and then runs a function that another goroutine has sent.
func (r *Ring) answer(ctx context.Context, f func(*fsm.State)) error {
	err := r.followClock(ctx)
	f(r.state)
	return err
}

// maxLoopSleep is the longest sleep of the loop.
const maxLoopSleep = time.Hour

// turn folds new events, decides until no decision is left, and returns how long the loop may sleep.
func (r *Ring) turn(ctx context.Context) (time.Duration, error) {
	if err := errors.Join(r.foldNewEvents(ctx), r.followClock(ctx)); err != nil {
		return 0, err
	}
	if r.unrecordedJump != nil {
		return decideRetryInterval, nil //nolint:nilerr // EKCO retries to record the jump, and decides nothing before
	}
	for r.deciding {
		decisions := fsm.Decide(r.state, r.cfg.Policy, r.clock.Now())
		if len(decisions.Events) == 0 {
			r.afterTurn(ctx)
			return r.sleepUntil(decisions.Next), nil
		}
		if _, err := r.store.Append(ctx, decisions.Events...); err != nil {
			r.log.Warn("cannot record decisions; EKCO does nothing until it can",
				"events", len(decisions.Events), "error", err)
			return decideRetryInterval, nil
		}
		if err := r.foldNewEvents(ctx); err != nil {
			return 0, err
		}
	}
	r.afterTurn(ctx)
	return maxLoopSleep, nil
}

func (r *Ring) sleepUntil(next time.Time) time.Duration {
	if next.IsZero() {
		return maxLoopSleep
	}
	return min(max(next.Sub(r.clock.Now()), 0), maxLoopSleep)
}

func (r *Ring) foldNewEvents(ctx context.Context) error {
	for event, err := range r.cfg.Store.Read(ctx, journal.Query{After: r.state.Seq}) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("read the journal after event %d: %w", r.state.Seq, err)
		}
		r.foldEvent(event.Decoded())
	}
	return nil
}

// foldEvent folds one event and informs the other parts.
func (r *Ring) foldEvent(event journal.Decoded) {
	r.state.ApplyDecoded(event)
	delete(r.unrecorded, event.Action)
	r.cfg.Metrics.Folded(event)
	r.progress.ended(event)
	r.updateLocksAtStepStart(event)
	if !r.cfg.Policy.DryRun {
		r.events.record(event)
	}
	r.logEvent(event)
	r.signalWorkers(event)
	r.unmirrored = r.unmirrored || isCausedByPersons(event.Type)
}

// afterTurn informs the other parts of the new state.
func (r *Ring) afterTurn(ctx context.Context) {
	if !r.deciding {
		return
	}
	r.startWorkers()
	r.wakeNext()
	r.observers.Follow(things(r.state))
	if r.mayMirror() {
		r.mirror.Update(r.state.OpenActions(), r.state.Journal.ClusterUID, r.state.Carried())
		r.refreshMirror()
	}
	r.cfg.Metrics.State(fsm.NewWorld(r.state, r.cfg.Policy, r.clock.Now()))
	if r.state.Seq-r.lastSaved >= r.cfg.SnapshotEvery {
		r.saveSnapshot(ctx)
	}
}

// mayMirror reports whether this ring writes the mirror. A dry run does not. A ring for one command does so only after
// a request. In safe mode the mirror must not change, because it may have events that the journal lost.
func (r *Ring) mayMirror() bool {
	return !r.cfg.Policy.DryRun && (!r.cfg.forCommand() || len(r.admitted) > 0) && !r.state.Journal.SafeMode()
}

// refreshMirror writes the mirror after a change of pauses, so that EKCO notices the loss of a pause.
func (r *Ring) refreshMirror() {
	if r.unmirrored {
		r.mirror.Refresh()
	}
	r.unmirrored = false
}

// isCausedByPersons reports whether only persons cause events of this type, so that EKCO cannot observe them again in
// the cluster.
func isCausedByPersons(event journal.Type) bool {
	switch event {
	case journal.TypePauseSet, journal.TypePauseCleared, journal.TypeJournalAccepted:
		return true
	}
	return false
}

// saveSnapshot saves the folded state for a quick next start. A failure is only a warning, because the next start can
// fold all events.
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
