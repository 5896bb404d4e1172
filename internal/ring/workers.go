package ring

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// worker runs one open action.
type worker struct {
	signals chan actions.Signal
	// restartAt is set after the worker ended early; it is started again then.
	restartAt time.Time
	ended     bool
}

type workerResult struct {
	action string
	err    error
}

// restartDelay is how long an action rests after its worker had to give up,
// for example because the journal could not be written.
const restartDelay = 2 * time.Second

// signalBuffer holds more signals than people send; a full buffer means the
// worker has a signal of that kind waiting already.
const signalBuffer = 8

// startWorkers gives every open action without one a worker.
func (r *Ring) startWorkers() {
	for _, record := range r.state.OpenActions() {
		if !r.mayRun(record) {
			continue
		}
		if existing, ok := r.workers[record.ID]; ok && (!existing.ended || time.Now().Before(existing.restartAt)) {
			continue
		}
		r.startWorker(record)
	}
}

// mayRun says whether an open action is this ring's to run. A dry run leaves
// real actions to an operator that is none.
func (r *Ring) mayRun(record journal.ActionRecord) bool {
	switch {
	case r.state.Journal.SafeMode():
		return false
	case r.cfg.Policy.DryRun && !record.Request.DryRun:
		return false
	case r.cfg.OnlyNode != "":
		return r.admitted[record.ID]
	}
	return true
}

func (r *Ring) startWorker(record journal.ActionRecord) {
	w := &worker{signals: make(chan actions.Signal, signalBuffer)}
	r.workers[record.ID] = w
	ctx := r.workersCtx
	r.workersWG.Go(func() {
		err := r.runner.Run(ctx, record, w.signals)
		select {
		case r.finished <- workerResult{action: record.ID, err: err}:
		case <-r.loopEnded:
		}
	})
}

// workerEnded forgets a worker, or arms its restart.
func (r *Ring) workerEnded(result workerResult) {
	w := r.workers[result.action]
	if w == nil {
		return
	}
	if result.err == nil || errors.Is(result.err, context.Canceled) {
		delete(r.workers, result.action)
		return
	}
	r.log.Warn("an action could not go on; it is taken up again", "action", result.action, "error", result.err)
	w.ended = true
	w.restartAt = time.Now().Add(restartDelay)
	time.AfterFunc(restartDelay, r.wakeLoop)
}

// signalWorker tells a worker what it cannot see in its own record.
func (r *Ring) signalWorker(event journal.Event) {
	var signal actions.Signal
	switch event.Type {
	case journal.TypeActionCancelling:
		signal = actions.SignalCancel
	case journal.TypeActionRetried:
		signal = actions.SignalRetry
	default:
		return
	}
	w := r.workers[event.Action]
	if w == nil {
		return
	}
	select {
	case w.signals <- signal:
	default:
	}
}

// mirrorFirst makes sure that the plan of an irreversible action is in the
// mirror before its first effect. A mirror that cannot be written delays the
// action a little and never stops it.
func (r *Ring) mirrorFirst(ctx context.Context, record journal.ActionRecord) {
	if record.Request.DryRun || !slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.Irreversible }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	var foldErr error
	err := r.do(ctx, func(s *fsm.State) {
		foldErr = r.catchUp(ctx)
		r.mirror.Update(s.OpenActions(), s.Journal.ClusterUID)
	})
	if err := errors.Join(err, foldErr); err != nil {
		return
	}
	if err := r.mirror.Sync(ctx); err != nil {
		r.log.Warn("the plan is not in the mirror yet; going on", "action", record.ID, "error", err)
	}
}

const mirrorPatience = 3 * time.Second
