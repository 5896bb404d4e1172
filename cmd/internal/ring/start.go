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

// Observers is what the ring needs of running observers.
type Observers interface {
	// Follow hands them what the machines know. It is called in the loop.
	Follow(things iter.Seq[observers.Thing])
	// WaitSynced returns once the first lists have been recorded.
	WaitSynced(ctx context.Context) error
	// Synced reports whether the journal is up to date with the cluster now.
	Synced() bool
	// Suspect tells the observers of a call that failed.
	Suspect(err error)
	// Absent lists what is not observed, for people.
	Absent() []string
	// Stop ends the observers and waits for them.
	Stop()
}

// Recorder is where observers write facts.
type Recorder interface {
	Record(ctx context.Context, drafts ...journal.Draft) error
}

// StartObservers starts observers of the sources that write to the recorder. The
// sources know what the journal does; what happened since becomes events.
type StartObservers func(ctx context.Context, sources []observers.Source, recorder Recorder) Observers

// start brings the ring up in the order that keeps a wrong cluster, a lost
// plan, a wrong clock or an old list from doing harm: identity, mirror, clock,
// operator.started, observers, and only then decisions.
func (r *Ring) start(ctx context.Context, fatal chan<- error) {
	err := r.identify(ctx)
	if err == nil {
		err = r.consult(ctx)
	}
	if err == nil {
		err = r.setClock(ctx)
	}
	if err == nil {
		err = r.announce(ctx)
	}
	if err == nil {
		err = r.observe(ctx)
	}
	switch {
	case err == nil:
		close(r.identified)
	case ctx.Err() == nil:
		fatal <- err
	}
}

// patiently repeats f until it succeeds, fails for good, or ctx ends.
func (r *Ring) patiently(ctx context.Context, what string, f func(context.Context) error) error {
	failure := ""
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 200*time.Millisecond, 5*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := f(ctx)
		r.await(what, err)
		if err != nil && ctx.Err() == nil && err.Error() != failure {
			failure = err.Error()
			r.log.Warn("still trying to "+what, "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	return err
}

// identify binds the journal to the cluster.
func (r *Ring) identify(ctx context.Context) error {
	return r.patiently(ctx, "learn which cluster this is", func(ctx context.Context) error {
		uid, err := r.kube.ClusterUID(ctx)
		if errors.Is(err, kube.ErrForbidden) {
			r.log.Info("may not read namespace kube-system: cannot tell whether the journal is of this cluster")
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

// announce records who observes from now on.
func (r *Ring) announce(ctx context.Context) error {
	return r.patiently(ctx, "write to the journal", func(ctx context.Context) error {
		_, err := r.store.Append(ctx, r.announcement(r.clockSkew()))
		r.announced.Store(err == nil)
		return err
	})
}

// announcement says who observes, and by which clock; skew is how far the API
// server's is ahead, if that was looked at.
func (r *Ring) announcement(skew *journal.Duration) journal.Draft {
	identity := r.cfg.Identity
	identity.DryRun = r.cfg.Policy.DryRun
	boot, up := r.clock.Uptime()
	identity.BootID, identity.Uptime, identity.ClockSkew = boot, journal.Duration(up), skew
	return journal.Draft{
		Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: Actor, Payload: identity,
	}
}

// observe starts the observers and, once they have caught up, decisions.
func (r *Ring) observe(ctx context.Context) error {
	r.await(listing, nil)
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
	return r.do(ctx, func(*fsm.State) { r.deciding = true })
}
