package ring

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Onlooker is an EKCO without a journal, for as long as that cannot be opened. It
// observes, folds what it sees in memory and shows it. It decides nothing, and has
// nothing that it could act with.
type Onlooker struct {
	cfg OnlookerConfig

	// mu guards what follows. Nothing is decided on this state, and it is thrown
	// away when the journal is open.
	mu        sync.Mutex
	state     *fsm.State
	observers Observers
	unopened  api.Unopened
}

// passive is the policy of who only looks.
var passive = fsm.Policy{Passive: true}

// OnlookerConfig is what an onlooker is made of.
type OnlookerConfig struct {
	// Path is that of the journal.
	Path string
	// Identity says who runs.
	Identity journal.OperatorStarted
	// Capabilities are what it could do, of which it observes and shows the things.
	Capabilities Capabilities
	Observe      StartObservers
	// Verify checks the file for "journal verify".
	Verify  func(ctx context.Context, path string) (api.VerifyResult, error)
	Log     *slog.Logger
	Metrics Metrics
}

// NewOnlooker returns an onlooker; problem is why the journal could not be opened.
func NewOnlooker(cfg OnlookerConfig, problem error) *Onlooker {
	return &Onlooker{
		cfg: cfg, state: fsm.NewState(cfg.Capabilities.Machines()...),
		unopened: api.Unopened{Since: time.Now(), Problem: problem.Error()},
	}
}

// MayPass reports whether the journal may be opened later, although opening it
// failed and nothing is done about that.
func MayPass(err error) bool {
	unwritable := errors.Is(err, journal.ErrUnwritable) && !errors.Is(err, fs.ErrPermission)
	// What is still damaged after an attempt to save it could not be saved yet.
	return errors.Is(err, journal.ErrUnverified) || errors.Is(err, journal.ErrDamaged) || unwritable
}

// The pauses between two attempts to open the journal.
const (
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
)

// Wait observes, and tries to open the journal with growing pauses, until that
// succeeds, fails for good or ctx ends; then it has ended observing. attempt
// counts from 1.
func (o *Onlooker) Wait(ctx context.Context, open func(ctx context.Context, attempt int) error) error {
	observing, stop := context.WithCancel(ctx)
	defer stop()
	if err := o.observe(observing); err != nil {
		return err
	}
	defer o.observers.Stop()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = firstPause, longestPause, 2
	for attempt := 1; ; attempt++ {
		if !o.pause(ctx, pauses.NextBackOff()) {
			return ctx.Err()
		}
		err := open(ctx, attempt)
		if err == nil || ctx.Err() != nil || !MayPass(err) && !errors.Is(err, journal.ErrLocked) {
			return err
		}
		o.failed(err)
	}
}

// observe expects the observers to run until they are stopped.
func (o *Onlooker) observe(ctx context.Context) error {
	err := o.fold(journal.Draft{
		Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: Actor, Payload: o.cfg.Identity,
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	sources := o.cfg.Capabilities.sources(o.state)
	o.mu.Unlock()
	observers := o.cfg.Observe(ctx, sources, o)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.observers = observers
	return nil
}

func (o *Onlooker) pause(ctx context.Context, pause time.Duration) bool {
	o.mu.Lock()
	o.unopened.NextTry = time.Now().Add(pause)
	problem := o.unopened.Problem
	o.mu.Unlock()
	o.cfg.Log.Error("the journal cannot be opened: EKCO observes, does nothing else, and leaves the file as it is",
		"problem", problem, "tried_again_in", pause.Round(time.Second))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o *Onlooker) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unopened.Problem = err.Error()
}

// Record implements [Recorder]: it folds facts and keeps no record of them.
func (o *Onlooker) Record(_ context.Context, drafts ...journal.Draft) error {
	return o.fold(drafts...)
}

// fold folds facts, and lets the machines follow them.
func (o *Onlooker) fold(drafts ...journal.Draft) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for len(drafts) > 0 {
		for _, draft := range drafts {
			event, err := draft.Event()
			if err != nil {
				return err
			}
			event.Seq, event.Time = o.state.Seq+1, now.UTC().Round(0)
			o.state.Apply(event)
		}
		drafts = fsm.Decide(o.state, passive, now).Events
	}
	o.cfg.Metrics.State(fsm.Look(o.state, passive, now))
	return nil
}
