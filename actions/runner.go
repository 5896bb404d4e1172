package actions

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Config configures a [Runner].
type Config struct {
	Store journal.Store
	Log   *slog.Logger
	// Kinds lists the kinds of action that the runner can run.
	Kinds []Kind
	// Preflights has the checks that plans may name. A step with a preflight that is neither here nor in its kind is
	// held. Some preflights run even if the plan does not list them: [SafeMode] and the kind's Rules before every step,
	// and [Mirrored], if it is in this map, before every irreversible step.
	Preflights map[string]Preflight
	// Watcher receives the progress that steps report; it may be nil.
	Watcher Watcher
	// Domains makes steps of different actions take turns. It may be nil if only one action runs at a time.
	Domains Domains
	Retry   RetryPolicy
	// Grace is how long a running effect may continue after ctx has ended; 0 means 8 s. A step that only waits for its
	// proof stops at once.
	Grace time.Duration
	// Actor is the actor of the events; "" means "operator".
	Actor string
	// Now returns the time by the journal's clock; nil means time.Now.
	Now func() time.Time
}

// actorOperator is the actor of events that EKCO itself decides.
const actorOperator = "operator"

// Runner runs actions. It is safe for concurrent use and keeps no state between calls, because the journal has all
// state.
type Runner struct {
	cfg   Config
	kinds map[journal.ActionKind]*Kind
}

// NewRunner returns a runner.
func NewRunner(cfg Config) *Runner {
	cfg.Retry = cfg.Retry.withDefaults()
	cfg.Grace = cmp.Or(cfg.Grace, 8*time.Second)
	cfg.Actor = cmp.Or(cfg.Actor, actorOperator)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	kinds := make(map[journal.ActionKind]*Kind, len(cfg.Kinds))
	for i := range cfg.Kinds {
		kinds[cfg.Kinds[i].Kind] = &cfg.Kinds[i]
	}
	return &Runner{cfg: cfg, kinds: kinds}
}

// kindFor returns the action's kind, with the definition for its subject. It returns nil if this EKCO does not know the
// kind.
func (r *Runner) kindFor(record journal.ActionRecord) *Kind {
	kind := r.kinds[record.Kind]
	if kind == nil || kind.For == nil {
		return kind
	}
	of := *kind
	of.Definition = kind.For(record.Subject)
	return &of
}

// Run runs or resumes an action. It returns nil when the event action.ended is on disk. At most one Run per action may
// be active.
//
// When ctx ends, running effects get [Config.Grace] to finish. Steps that do not finish, or only wait for their proof,
// stay open in the journal, and Run returns ctx's error. If the journal cannot be written, Run starts nothing more and
// returns an error that wraps [journal.ErrUnwritable]. In both cases a later Run with the newly folded record continues
// the action.
//
// The caller must pass to the inbox all events of the action that other writers appended after the record was folded.
// inbox may be nil.
func (r *Runner) Run(ctx context.Context, record journal.ActionRecord, inbox *Inbox) error {
	if record.Ended != nil {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	return r.newRun(WithRunContext(ctx), record).runToEnd(inbox) //nolint:contextcheck // a run has three contexts, which end at different times
}

// lifeKey is the context key of a run's own context.
type lifeKey struct{}

// WithRunContext returns a context that is the [RunContext] of all contexts derived from it.
func WithRunContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, lifeKey{}, ctx)
}

// RunContext returns the context of the run to which a step or preflight belongs, or nil outside a run. It is for work
// that continues between the steps of an action.
func RunContext(ctx context.Context) context.Context {
	life, _ := ctx.Value(lifeKey{}).(context.Context)
	return life
}

func (r *Runner) preflight(kind *Kind, name string) (Preflight, bool) {
	if p, ok := kind.Preflights[name]; ok {
		return p, true
	}
	p, ok := r.cfg.Preflights[name]
	return p, ok
}
