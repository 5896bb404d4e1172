package ring

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// Observers controls running observers.
type Observers interface {
	// Follow passes the state of the machines to the observers. It is called in the loop.
	Follow(things iter.Seq[observers.Thing])
	// WaitSynced waits until the first lists are recorded.
	WaitSynced(ctx context.Context) error
	// Synced reports whether the journal is up to date with the cluster now.
	Synced() bool
	// ReportFailedCall reports a failed call to the observers.
	ReportFailedCall(err error)
	// Absent lists texts for persons about what the observers cannot observe.
	Absent() []string
	// Stop stops the observers and waits for them.
	Stop()
}

// Recorder records the facts of observers.
type Recorder interface {
	Record(ctx context.Context, drafts ...journal.Draft) error
}

// StartObservers starts observers that write to the recorder. The sources know the state in the journal, and report
// changes since then.
type StartObservers func(ctx context.Context, sources []observers.Source, recorder Recorder) Observers

// start starts the parts of the ring in a safe order: identity, mirror, clock, operator.started, observers, and only
// then decisions. The order prevents decisions for the wrong cluster, without a plan in the mirror, with a wrong clock
// or from an old list.
func (r *Ring) start(ctx context.Context, fatal chan<- error) {
	err := r.identify(ctx)
	if err == nil {
		err = r.consultMirror(ctx)
	}
	if err == nil {
		err = r.setClock(ctx)
	}
	if err == nil {
		err = r.recordStarted(ctx)
	}
	if err == nil {
		err = r.observe(ctx)
	}
	switch {
	case err == nil:
		close(r.startDone)
	case ctx.Err() == nil:
		fatal <- err
	}
}

// withRetries repeats f until it succeeds, fails for good, or ctx ends.
func (r *Ring) withRetries(ctx context.Context, what string, f func(context.Context) error) error {
	failure := ""
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 5*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := f(ctx)
		r.recordAwaited(what, err)
		if err != nil && ctx.Err() == nil && err.Error() != failure {
			failure = err.Error()
			r.log.Warn("still trying to "+what, "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	return err
}

// identify binds the journal to the cluster, or checks that the journal belongs to the cluster.
func (r *Ring) identify(ctx context.Context) error {
	return r.withRetries(ctx, "read the identity of the cluster", func(ctx context.Context) error {
		uid, err := r.kube.ClusterUID(ctx)
		if errors.Is(err, kube.ErrForbidden) {
			r.log.Info("EKCO may not read namespace kube-system, so it cannot check whether the journal is of this cluster")
			return nil
		}
		if err != nil {
			return err
		}
		r.cfg.Identity.ClusterUID = uid
		err = r.cfg.Store.BindCluster(ctx, uid)
		if errors.Is(err, journal.ErrOtherCluster) {
			return backoff.Permanent(err)
		}
		return err
	})
}

func (r *Ring) recordStarted(ctx context.Context) error {
	return r.withRetries(ctx, "write to the journal", func(ctx context.Context) error {
		_, err := r.store.Append(ctx, r.startedDraft(r.clockSkew()))
		r.announced.Store(err == nil)
		return err
	})
}

// startedDraft returns a draft that describes this process and its clock. skew is how far the API server's clock is
// ahead, or nil.
func (r *Ring) startedDraft(skew *journal.Duration) journal.Draft {
	identity := r.cfg.Identity
	identity.DryRun = r.cfg.Policy.DryRun
	boot, up := r.clock.Uptime()
	identity.BootID, identity.Uptime, identity.ClockSkew = boot, journal.Duration(up), skew
	return journal.Draft{
		Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: Actor, Payload: identity,
	}
}

// observe starts the observers, and allows decisions once they are synced.
func (r *Ring) observe(ctx context.Context) error {
	r.recordAwaited(lastStartStep, nil)
	var sources []observers.Source
	err := r.do(ctx, func(s *fsm.State) { sources = r.cfg.Capabilities.sources(s) })
	if err != nil {
		return err
	}
	running := r.cfg.Observe(r.observersCtx, sources, r.store)
	r.cfg.Unanswered.observers.Store(&running)
	err = r.do(ctx, func(*fsm.State) { r.observers = running })
	if err != nil {
		return err
	}
	if err := running.WaitSynced(ctx); err != nil {
		return err
	}
	if absent := running.Absent(); len(absent) > 0 {
		r.log.Info("parts of the cluster are not observed: ekco status lists them", "parts", len(absent))
	}
	return r.do(ctx, func(*fsm.State) { r.deciding = true })
}
