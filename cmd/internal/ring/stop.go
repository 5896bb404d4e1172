package ring

import (
	"context"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// stopEventTimeout limits the write of the last event.
const stopEventTimeout = time.Second

// shutDown stops observers and decisions, and gives running steps their grace period. Open actions stay open. ctx is
// the loop's context.
func (r *Ring) shutDown(ctx context.Context, cause error) {
	r.runLastTurn(ctx)
	var observers Observers
	// If the loop has ended, no other goroutine uses its fields, so shutDown may use them directly.
	if err := r.do(ctx, func(*fsm.State) { r.deciding = false; observers = r.observers }); err != nil {
		observers = r.observers
	}
	r.stopObservers()
	if observers != nil {
		observers.Stop()
	}
	r.stopBeside()
	r.stopWorkers()
	r.workersWG.Wait()
	r.besideWG.Wait()
	r.recordStopped(ctx, cause)
	r.saveLastSnapshot(ctx)
}

// runLastTurn lets the loop decide about the events in the journal, so that the machine of a node also sees the end of
// an action that has just ended.
func (r *Ring) runLastTurn(ctx context.Context) {
	if err := r.do(ctx, func(*fsm.State) {}); err != nil {
		r.log.Debug("no last turn", "error", err)
	}
}

// saveLastSnapshot saves a snapshot that includes the last event, so that the next start replays nothing. It does
// nothing if the loop has ended.
func (r *Ring) saveLastSnapshot(ctx context.Context) {
	err := r.do(ctx, func(s *fsm.State) {
		if err := r.foldNewEvents(ctx); err == nil && s.Seq > r.lastSaved {
			r.saveSnapshot(ctx)
		}
	})
	if err != nil {
		r.log.Debug("no last snapshot", "error", err)
	}
}

// recordStopped records operator.stopped, if operator.started is recorded.
func (r *Ring) recordStopped(ctx context.Context, cause error) {
	if !r.announced.Load() {
		return
	}
	reason := "asked to stop"
	if cause != nil {
		reason = cause.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, stopEventTimeout)
	defer cancel()
	_, err := r.store.Append(ctx, journal.Draft{
		Type: journal.TypeOperatorStopped, Subject: journal.OperatorSubject, Actor: Actor,
		Payload: journal.OperatorStopped{Reason: reason},
	})
	if err != nil {
		r.log.Warn("cannot record that EKCO stops", "error", err)
	}
}
