package ring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// Actor is the actor of the loop's own decisions.
const Actor = "operator"

// Config configures a ring.
type Config struct {
	Store journal.Store
	// Kube is the client of the Kubernetes API. Like every other client, it refuses changes in a dry run, and reports
	// to Unanswered; see kube.Terms.
	Kube kube.API
	// Unanswered collects the requests that the API did not answer. It may be nil.
	Unanswered *Unanswered
	// Capabilities are what the ring can do.
	Capabilities Capabilities
	// Policy is the engine's policy. Capabilities have their own policies.
	Policy fsm.Policy
	Log    *slog.Logger
	// Clock is the clock of Store's events; nil means the clock of the process.
	Clock *clock.Clock
	// Identity describes this process, for operator.started.
	Identity journal.OperatorStarted
	// Observe starts the observers. See [Observers].
	Observe StartObservers
	// Retry replaces the runner's backoff. The zero value means the default.
	Retry actions.RetryPolicy
	// Only, if it is set, makes this a ring for one command, which starts no automatic actions and runs only the
	// requested action.
	Only Only
	// NotDone names the configured tasks that EKCO does not do. The status shows them.
	NotDone []string
	// SnapshotEvery is the number of events between snapshots; 0 means 5,000.
	SnapshotEvery uint64
	// Beside runs next to the ring. It is called when the start is complete, and must return when the ring stops. may
	// reports whether EKCO may change the cluster now; open reports whether an action is open. Beside may be nil.
	Beside func(ctx context.Context, may func() bool, open func(action string) bool)
	// Metrics may be nil.
	Metrics Metrics
	// Grace is how long a running step may continue after Run is stopped; 0 means 8 s.
	Grace time.Duration
}

// Only selects the actions of a ring for one command by their kind and the name of the thing.
type Only struct {
	Kind journal.ActionKind
	Name string
}

// forCommand reports whether the ring is for one command.
func (c *Config) forCommand() bool { return c.Only != Only{} }

// Ring is a running EKCO. Make one with [New], then call [Ring.Run] once.
type Ring struct {
	cfg            Config
	log            *slog.Logger
	clock          *clock.Clock
	store          *watchedStore
	kube           kube.API
	words          *words.Vocabulary
	runner         *actions.Runner
	lookoutsByKind map[journal.ActionKind]Lookout
	// kinds lists the kinds of action that the ring can run.
	kinds     []actions.Kind
	mirror    *mirror.Mirror
	journalID string

	commands chan func(*fsm.State)
	// questions are functions that change nothing, so the loop decides nothing after them.
	questions chan func(*fsm.State)
	wake      chan struct{}
	finished  chan workerResult
	// startDone is closed when all steps of [Ring.start] are done.
	startDone chan struct{}
	loopEnded chan struct{}
	running   atomic.Bool
	// startedAt is when the process started. startStatus describes what the start waits for. announced is true after
	// operator.started is recorded.
	startedAt   time.Time
	startStatus atomic.Pointer[awaited]
	announced   atomic.Bool

	// Run sets these fields before the loop starts.
	workersCtx    context.Context
	stopWorkers   context.CancelFunc
	observersCtx  context.Context
	stopObservers context.CancelFunc
	workersWG     sync.WaitGroup
	// stopBeside stops Config.Beside; besideWG waits until it has returned.
	stopBeside context.CancelFunc
	besideWG   sync.WaitGroup

	progress stepReports

	// Only the loop uses these fields.
	state *fsm.State
	// admitted has the actions that a ring for one command may run.
	admitted map[string]bool
	workers  map[string]*worker
	// domains has the locks of steps, and the steps that wait for locks.
	domains fsm.Domains
	// unrecorded has the results of actions that could not be recorded.
	unrecorded map[string]string
	deciding   bool
	// unmirrored is true while a change of pauses is missing in the mirror.
	unmirrored bool
	lastSaved  uint64
	// followsClock is true once the ring follows the machine's clock. unrecordedJump is the error while a jump of that
	// clock could not be recorded.
	followsClock   bool
	unrecordedJump error
	// triedToWrite is the time of the last attempt to write to an unwritable journal.
	triedToWrite time.Time
	observers    Observers
	lastSearch   lastSearch
	events       *eventRecorder
}

// New folds the journal and returns a ring. Call [Ring.Run] to start it.
func New(ctx context.Context, cfg Config) (*Ring, error) {
	if cfg.SnapshotEvery == 0 {
		cfg.SnapshotEvery = 5_000
	}
	if cfg.Grace == 0 {
		cfg.Grace = 8 * time.Second
	}
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	if cfg.Unanswered == nil {
		cfg.Unanswered = &Unanswered{}
	}
	cfg.Policy = cfg.Capabilities.Policy(cfg.Policy)
	r := &Ring{
		cfg:        cfg,
		log:        cfg.Log,
		clock:      cfg.Clock,
		kube:       cfg.Kube,
		words:      cfg.Capabilities.Vocabulary(),
		commands:   make(chan func(*fsm.State)),
		questions:  make(chan func(*fsm.State)),
		wake:       make(chan struct{}, 1),
		finished:   make(chan workerResult),
		startDone:  make(chan struct{}),
		loopEnded:  make(chan struct{}),
		workers:    make(map[string]*worker),
		unrecorded: make(map[string]string),
	}
	if cfg.forCommand() {
		r.cfg.Policy.Passive = true
		r.admitted = make(map[string]bool)
	}
	if r.clock == nil {
		r.clock = clock.New(clock.Process())
	}
	r.store = &watchedStore{Store: cfg.Store, metrics: cfg.Metrics, log: cfg.Log}
	state, unread, err := Fold(ctx, cfg.Store, cfg.Capabilities.Machines()...)
	if err != nil {
		return nil, err
	}
	r.state = state
	r.lastSaved = state.Seq
	if unread != nil {
		r.replaceSnapshot(ctx, unread)
	}
	r.clock.Continue(state.Clock.BootID, state.Clock.Zero)
	r.startedAt = r.clock.Now()
	return r, r.prepare(ctx)
}

// replaceSnapshot logs that the snapshot could not be decoded, and replaces it, so that the next start can use it.
func (r *Ring) replaceSnapshot(ctx context.Context, unread error) {
	text := fmt.Sprintf("cannot decode the journal's snapshot, so EKCO replayed all events: %v", unread)
	r.log.Warn(text)
	r.cfg.NotDone = append(r.cfg.NotDone, text)
	r.saveSnapshot(ctx)
}

// prepare creates the parts that need the journal's identity.
func (r *Ring) prepare(ctx context.Context) error {
	stat, err := r.cfg.Store.Stat(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's identity: %w", err)
	}
	r.journalID = stat.JournalID
	if r.kinds, err = r.cfg.Capabilities.kinds(r.kube); err != nil {
		return err
	}
	r.cfg.Metrics.MayHold(r.preflightNames())
	host := r.cfg.Identity.Host
	if r.cfg.forCommand() {
		host = "" // another operator on this machine may have its own journal, which is not lost
	}
	r.mirror = mirror.New(r.kube, r.journalID, r.log, mirror.OnFailure(r.cfg.Metrics.MirrorFailed), mirror.Writer(r.cfg.Identity.Version, host),
		mirror.Journal(r.cfg.Store), mirror.OnTakeover(r.takeOver), mirror.Judge(r.compareWithMirror), mirror.Expendable(r.expendableKinds()...))
	r.events = newEventRecorder(r.kube, r.words, r.log)
	r.lookoutsByKind = r.lookouts()
	r.runner = actions.NewRunner(actions.Config{
		Store:      r.store,
		Log:        r.log,
		Kinds:      r.kinds,
		Preflights: r.policyPreflights(),
		Watcher:    func(action, step string, now actions.Progress) { r.progress.report(r.clock.Now(), action, step, now) },
		Domains:    lockManager{r},
		Retry:      r.cfg.Retry,
		Now:        r.clock.Now,
		Grace:      r.cfg.Grace,
	})
	return nil
}

// Fold returns the state of the journal from its snapshot and all later events. If the snapshot cannot be decoded, it
// ignores the snapshot, and returns the error as unread.
func Fold(ctx context.Context, store journal.Store, capabilities ...fsm.Capability) (state *fsm.State, unread, err error) {
	snapshot, err := store.Snapshot(ctx)
	switch {
	case err == nil:
		state, unread = fsm.LoadState(snapshot, capabilities...)
	case !errors.Is(err, journal.ErrNoSnapshot):
		return nil, nil, fmt.Errorf("read the journal's snapshot: %w", err)
	}
	if state == nil {
		state = fsm.NewState(capabilities...)
	}
	if errors.Is(unread, fsm.ErrOtherFold) {
		unread = nil // each upgrade leaves a snapshot of the former version
	}
	for event, err := range store.Read(ctx, journal.Query{After: state.Seq}) {
		if err != nil {
			return nil, nil, fmt.Errorf("replay the journal after event %d: %w", state.Seq, err)
		}
		state.Apply(event)
	}
	return state, unread, nil
}

// Run runs the ring until ctx ends, then stops it in order. It returns nil after an orderly stop,
// journal.ErrOtherCluster if the journal belongs to another cluster, and the journal's error if the journal can no
// longer be read.
func (r *Ring) Run(ctx context.Context) error {
	// The loop outlives ctx, because workers still append and send questions until they have stopped.
	loopCtx, stopLoop := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoop()
	r.workersCtx, r.stopWorkers = context.WithCancel(loopCtx)
	r.observersCtx, r.stopObservers = context.WithCancel(loopCtx)
	fatal := make(chan error, 3)
	var serving sync.WaitGroup
	after := r.state.Seq
	serving.Go(func() { r.follow(loopCtx, after, fatal) })
	serving.Go(func() { r.loop(loopCtx, fatal) })
	serving.Go(func() { r.mirror.Run(loopCtx) })
	serving.Go(func() { r.events.run(loopCtx) })
	r.runBeside(loopCtx)

	var starting sync.WaitGroup
	startCtx, stopStarting := context.WithCancel(ctx)
	defer stopStarting()
	starting.Go(func() { r.start(startCtx, fatal) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-fatal:
	}
	stopStarting()
	starting.Wait()
	r.shutDown(loopCtx, err)
	stopLoop()
	serving.Wait()
	return err
}

// Identified returns a channel that is closed when the start is complete.
func (r *Ring) Identified() <-chan struct{} { return r.startDone }

// errStopped is returned after the loop has ended.
var errStopped = errors.New("the operator is stopping; retry when it runs again")

// do runs f in the loop with the folded state, and waits until f has returned.
func (r *Ring) do(ctx context.Context, f func(*fsm.State)) error {
	return r.sendToLoop(ctx, r.commands, f)
}

// ask is [Ring.do] for an f that changes nothing. f sees all events on disk. The loop decides nothing after f: many
// such questions come before a destructive step, and decisions would take longer than the answers.
func (r *Ring) ask(ctx context.Context, f func(*fsm.State)) error {
	var foldErr error
	err := r.sendToLoop(ctx, r.questions, func(s *fsm.State) {
		foldErr = r.foldNewEvents(ctx)
		f(s)
	})
	return errors.Join(err, foldErr, ctx.Err())
}

func (r *Ring) sendToLoop(ctx context.Context, to chan<- func(*fsm.State), f func(*fsm.State)) error {
	done := make(chan struct{})
	select {
	case to <- func(s *fsm.State) { defer close(done); f(s) }:
		<-done
		return nil
	case <-r.loopEnded:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}
