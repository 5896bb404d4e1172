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

// listener is who is told of what others did; see [actions.Inbox].
type listener interface {
	Tell(event journal.Event, payload journal.Payload)
	Recheck()
}

// worker runs one open action.
type worker struct {
	inbox listener
	// stop ends it before its action is over, which then stays open.
	stop context.CancelFunc
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

// workerEnded forgets a worker, or arms its restart.
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

// haltWorkers ends all workers, because safe mode has begun under them. Those
// whose step is under way give it a moment, as at the end of the process.
func (r *Ring) haltWorkers() {
	for _, w := range r.workers {
		w.stop()
	}
}

// logEndedEarly says that an action could not go on: once, as long as it is for
// the same reason that nothing of it can be written down.
func (r *Ring) logEndedEarly(result workerResult) {
	level := slog.LevelWarn
	if unrecorded, ok := errors.AsType[*actions.UnrecordedError](result.err); ok {
		if said, before := r.unrecorded[result.action]; before && said == unrecorded.What {
			level = slog.LevelDebug
		}
		r.unrecorded[result.action] = unrecorded.What
	}
	r.log.Log(context.Background(), level, "an action could not go on; it is taken up again", "action", result.action, "error", result.err)
}

// signalWorkers tells workers what they cannot see in their own records.
func (r *Ring) signalWorkers(event journal.Decoded) {
	switch event.Type {
	case journal.TypeJournalOutdated:
		r.haltWorkers()
	case journal.TypeActionCancelling, journal.TypeActionRetried, journal.TypeActionJoined, journal.TypeActionWarned:
		r.tellWorker(event)
	}
	if r.words.Wakes(event.Event) {
		// What a held action waits for may be there.
		for _, w := range r.workers {
			w.inbox.Recheck()
		}
	}
}

// tellWorker hands an event on to the worker of its action. One that cannot be read
// has made the action unreadable.
func (r *Ring) tellWorker(event journal.Decoded) {
	w := r.workers[event.Action]
	switch {
	case w == nil:
	case event.Err != nil:
		w.inbox.Recheck()
	default:
		w.inbox.Tell(event.Event, event.Body)
	}
}

// mirrored makes sure, before each irreversible step, that another EKCO would know all of the action. Where
// no step of the plan is irreversible it is enough to know the plan, and what is left alone: the other EKCO
// verifies each step before it repeats it. What an EKCO asks for again by itself need not be known. So such actions
// do not wait for each of their steps to be mirrored.
func (r *Ring) mirrored(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	err := r.updateMirror(ctx)
	if kind := r.state.Kind(record.Kind); errors.Is(err, errSafeMode) && kind != nil && kind.InSafeMode {
		return actions.Pass().About("safe mode").OnceLasting(safeModeDelay, "another EKCO may be at work on it")
	}
	if err != nil {
		return actions.Hold(fmt.Sprintf("cannot check: %v", err)).About("unchecked")
	}
	held, is := r.mirror.Held(record.ID)
	known := is && held.Planned && len(held.Left) == len(record.Left) || slices.Contains(r.expendable(), record.Kind)
	if known && r.mirror.Failing() == nil && r.reversible(record) {
		return actions.Pass()
	}
	err = r.mirror.Ready(ctx, record.ID, r.noun(record.Kind), mirrorPatience)
	// Without the permission there is no mirror, and EKCO works without.
	if err != nil && !errors.Is(err, kube.ErrForbidden) {
		return actions.Hold(err.Error()).About(mirror.Key(err))
	}
	return actions.Pass()
}

// safeModeDelay is how long an action waits in safe mode for what another EKCO may be doing, of
// which the mirror would tell otherwise.
const safeModeDelay = 2 * time.Minute

// reversible reports whether no step of an action is irreversible, nor may interfere with another EKCO.
func (r *Ring) reversible(record journal.ActionRecord) bool {
	exclusive := slices.ContainsFunc(r.kinds, func(k actions.Kind) bool { return k.Kind == record.Kind && k.Exclusive })
	return !exclusive && !slices.ContainsFunc(record.Plan.Steps, func(s journal.PlannedStep) bool { return s.Irreversible })
}

// errSafeMode keeps the mirror as it is: it may be the only record of what the
// journal lost.
var errSafeMode = errors.New("nothing is mirrored in safe mode; look at \"ekco status\", then run \"ekco journal accept\"")

var errStarting = errors.New("EKCO is starting: it writes the mirror once it has taken over what the mirror holds")

func (r *Ring) updateMirror(ctx context.Context) error {
	var foldErr error
	err := r.do(ctx, func(s *fsm.State) {
		foldErr = r.catchUp(ctx)
		switch {
		case s.Journal.SafeMode():
			foldErr = errors.Join(foldErr, errSafeMode)
			return
		case !r.deciding: // what the mirror holds may not be taken over yet
			foldErr = errors.Join(foldErr, errStarting)
			return
		}
		r.mirror.Update(s.OpenActions(), s.Journal.ClusterUID, s.Carried())
	})
	return errors.Join(err, foldErr)
}

const mirrorPatience = 2 * time.Minute

// noun is what people call an action of that kind.
func (r *Ring) noun(kind journal.ActionKind) string {
	for _, known := range r.kinds {
		if known.Kind == kind {
			return known.Noun
		}
	}
	return "action"
}

// expendable are the kinds of action that EKCO asks for anew by itself.
func (r *Ring) expendable() (kinds []journal.ActionKind) {
	for _, known := range r.kinds {
		if known.Expendable {
			kinds = append(kinds, known.Kind)
		}
	}
	return kinds
}
