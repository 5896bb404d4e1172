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

// Onlooker is EKCO's read-only mode while the journal cannot be opened. It observes, folds facts in memory, and shows
// the state. It decides nothing, and has no client that can change anything.
type Onlooker struct {
	cfg OnlookerConfig

	// mu guards the fields below. The state is dropped when the journal is open.
	mu        sync.Mutex
	state     *fsm.State
	observers Observers
	unopened  api.UnopenedJournal
}

// passivePolicy is the policy of the read-only mode.
var passivePolicy = fsm.Policy{Passive: true}

// OnlookerConfig configures an onlooker.
type OnlookerConfig struct {
	// Path is the journal's path.
	Path string
	// Identity describes this process.
	Identity journal.OperatorStarted
	// Capabilities lists the capabilities that it observes and shows.
	Capabilities Capabilities
	Observe      StartObservers
	// Verify does the work of the command "journal verify": it checks the journal file at path.
	Verify  func(ctx context.Context, path string) (api.VerifyResult, error)
	Log     *slog.Logger
	Metrics Metrics
}

// NewOnlooker returns an onlooker. problem is the error of opening the journal.
func NewOnlooker(cfg OnlookerConfig, problem error) *Onlooker {
	return &Onlooker{
		cfg: cfg, state: fsm.NewState(cfg.Capabilities.Machines()...),
		unopened: api.UnopenedJournal{Since: time.Now(), Problem: problem.Error()},
	}
}

// MayPass reports whether a later attempt to open the journal may succeed without a person.
func MayPass(err error) bool {
	unwritable := errors.Is(err, journal.ErrUnwritable) && !errors.Is(err, fs.ErrPermission)
	// ErrDamaged means here that a salvage attempt has failed; a later one may succeed.
	return errors.Is(err, journal.ErrUnverified) || errors.Is(err, journal.ErrDamaged) || unwritable
}

// These limit the pause between two attempts to open the journal.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
)

// Wait observes and retries to open the journal, with growing pauses. It returns when that succeeds or fails for good,
// or when ctx ends. It has then stopped observing. attempt counts from 1.
func (o *Onlooker) Wait(ctx context.Context, open func(ctx context.Context, attempt int) error) error {
	observing, stop := context.WithCancel(ctx)
	defer stop()
	if err := o.observe(observing); err != nil {
		return err
	}
	defer o.observers.Stop()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = firstPause, maxPause, 2
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

func (o *Onlooker) observe(ctx context.Context) error {
	err := o.foldFacts(journal.Draft{
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
	o.cfg.Log.Error("the journal cannot be opened: EKCO only observes, and leaves the file unchanged",
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

// Record implements [Recorder]. It folds facts and does not store them.
func (o *Onlooker) Record(_ context.Context, drafts ...journal.Draft) error {
	return o.foldFacts(drafts...)
}

// foldFacts folds facts, and the resulting decisions of the machines.
func (o *Onlooker) foldFacts(drafts ...journal.Draft) error {
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
		drafts = fsm.Decide(o.state, passivePolicy, now).Events
	}
	o.cfg.Metrics.State(fsm.NewWorld(o.state, passivePolicy, now))
	return nil
}
