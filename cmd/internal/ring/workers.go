package ring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// listener receives events for a worker; see [actions.Inbox].
type listener interface {
	Tell(event journal.Event, payload journal.Payload)
	Recheck()
}

// worker runs one open action.
type worker struct {
	inbox listener
	// stop stops the worker before its action has ended; the action stays open.
	stop context.CancelFunc
	// restartAt is when to restart a worker that ended early.
	restartAt time.Time
	ended     bool
}

type workerResult struct {
	action string
	err    error
}

// restartDelay is the pause before the restart of a worker that ended early, for example because the journal could not
// be written.
const restartDelay = 2 * time.Second

// startWorkers starts a worker for every open action that has none.
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

// mayRun reports whether this ring may run an open action. A dry run does not run real actions.
func (r *Ring) mayRun(record journal.ActionRecord) bool {
	switch {
	case !r.state.Runs(record.Kind):
		return false
	case r.cfg.Policy.DryRun && !record.Request.DryRun:
		return false
	case r.cfg.forCommand():
		return r.admitted[record.ID]
	}
	return true
}

func (r *Ring) startWorker(record journal.ActionRecord) {
	ctx, stop := context.WithCancel(r.workersCtx)
	inbox := actions.NewInbox()
	w := &worker{inbox: inbox, stop: stop}
	r.workers[record.ID] = w
	r.workersWG.Go(func() {
		defer stop()
		err := r.runner.Run(ctx, record, inbox)
		select {
		case r.finished <- workerResult{action: record.ID, err: err}:
		case <-r.loopEnded:
		}
	})
}

// workerEnded removes a worker, or schedules its restart.
func (r *Ring) workerEnded(result workerResult) {
	r.progress.forget(result.action)
	r.domains.Leave(result.action, "")
	w := r.workers[result.action]
	if w == nil {
		return
	}
	if result.err == nil || errors.Is(result.err, context.Canceled) {
		delete(r.workers, result.action)
		return
	}
	r.logEndedEarly(result)
	w.ended = true
	w.restartAt = time.Now().Add(restartDelay)
	time.AfterFunc(restartDelay, r.wakeLoop)
}

// haltWorkers stops all workers when safe mode begins. A running step has the same grace period as at the end of the
// process.
func (r *Ring) haltWorkers() {
	for _, w := range r.workers {
		w.stop()
	}
}

// logEndedEarly warns that an action cannot continue. While the cause is the same unrecorded result, it warns only
// once.
func (r *Ring) logEndedEarly(result workerResult) {
	level := slog.LevelWarn
	if unrecorded, ok := errors.AsType[*actions.UnrecordedError](result.err); ok {
		if said, before := r.unrecorded[result.action]; before && said == unrecorded.What {
			level = slog.LevelDebug
		}
		r.unrecorded[result.action] = unrecorded.What
	}
	r.log.Log(context.Background(), level, "an action could not continue; EKCO retries it", "action", result.action, "error", result.err)
}

// signalWorkers tells workers about changes that are not in their own records.
func (r *Ring) signalWorkers(event journal.Decoded) {
	switch event.Type {
	case journal.TypeJournalOutdated:
		r.haltWorkers()
	case journal.TypeActionCancelling, journal.TypeActionRetried, journal.TypeActionJoined, journal.TypeActionWarned:
		r.informWorker(event)
	}
	if r.words.Wakes(event.Event) {
		// Held actions may be able to continue.
		for _, w := range r.workers {
			w.inbox.Recheck()
		}
	}
}

// informWorker passes an event to the worker of its action. If the event cannot be read, the action becomes unreadable.
func (r *Ring) informWorker(event journal.Decoded) {
	w := r.workers[event.Action]
	switch {
	case w == nil:
	case event.Err != nil:
		w.inbox.Recheck()
	default:
		w.inbox.Tell(event.Event, event.Body)
	}
}

// requireMirrored is the preflight [actions.Mirrored]: the mirror must have the whole action. For a reversible action,
// it is enough if the mirror has the plan and the list of untouched objects, so the action need not wait for the mirror
// after each step: another EKCO verifies a step before it repeats it. The mirror need not have a reversible action that
// EKCO requests again automatically.
func (r *Ring) requireMirrored(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	err := r.updateMirror(ctx)
	if kind := r.state.Kind(record.Kind); errors.Is(err, errSafeMode) && kind != nil && kind.InSafeMode {
		return actions.Pass().About("safe mode").OnceLasting(safeModeDelay, "another EKCO may be at work on it")
	}
	if err != nil {
		return actions.Hold(fmt.Sprintf("cannot check: %v", err)).About("unchecked")
	}
	held, is := r.mirror.Held(record.ID)
	known := is && held.Planned && len(held.Left) == len(record.Left) || slices.Contains(r.expendableKinds(), record.Kind)
	if known && r.mirror.Failing() == nil && r.isReversible(record) {
		return actions.Pass()
	}
	err = r.mirror.Ready(ctx, record.ID, r.nounFor(record.Kind), mirrorTimeout)
	// Without this permission there is no mirror, and EKCO works without it.
	if err != nil && !errors.Is(err, kube.ErrForbidden) {
		return actions.Hold(err.Error()).About(mirror.Key(err))
	}
	return actions.Pass()
}

// safeModeDelay is how long an action waits in safe mode: another EKCO may be working on it, and in safe mode the
// mirror does not show that.
const safeModeDelay = 2 * time.Minute

// isReversible reports whether an action has no irreversible step and cannot interfere with another EKCO.
func (r *Ring) isReversible(record journal.ActionRecord) bool {
	exclusive := slices.ContainsFunc(r.kinds, func(k actions.Kind) bool { return k.Kind == record.Kind && k.Exclusive })
	return !exclusive && !slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.Irreversible })
}

// errSafeMode prevents writes of the mirror, which may be the only record of events that the journal lost.
var errSafeMode = errors.New("EKCO does not write the mirror in safe mode; read \"ekco status\", then run \"ekco journal accept\"")

var errStarting = errors.New("EKCO is starting: it takes over the content of the mirror before it writes the mirror")

func (r *Ring) updateMirror(ctx context.Context) error {
	var foldErr error
	err := r.do(ctx, func(s *fsm.State) {
		foldErr = r.foldNewEvents(ctx)
		switch {
		case s.Journal.SafeMode():
			foldErr = errors.Join(foldErr, errSafeMode)
			return
		case !r.deciding: // EKCO has not yet adopted the content of the mirror
			foldErr = errors.Join(foldErr, errStarting)
			return
		}
		r.mirror.Update(s.OpenActions(), s.Journal.ClusterUID, s.Carried())
	})
	return errors.Join(err, foldErr)
}

const mirrorTimeout = 2 * time.Minute

// nounFor returns the name of this kind of action in messages.
func (r *Ring) nounFor(kind journal.ActionKind) string {
	for _, known := range r.kinds {
		if known.Kind == kind {
			return known.Noun
		}
	}
	return "action"
}

// expendableKinds returns the kinds of action that EKCO requests again automatically.
func (r *Ring) expendableKinds() (kinds []journal.ActionKind) {
	for _, known := range r.kinds {
		if known.Expendable {
			kinds = append(kinds, known.Kind)
		}
	}
	return kinds
}
