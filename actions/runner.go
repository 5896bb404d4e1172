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
	// Kinds are the kinds of action that it can run.
	Kinds []Kind
	// Preflights by the name that plans use. A step is held if it lists a preflight that neither its kind nor this map
	// has. [SafeMode] and the Rules of a kind are also asked before every step, even if its plan does not list them;
	// [Mirrored] too, if it is in this map, before every irreversible step.
	Preflights map[string]Preflight
	// Watcher receives what steps report; it may be nil.
	Watcher Watcher
	// Domains lets steps of different actions take turns; nil if there is only one action at a time.
	Domains Domains
	Retry   RetryPolicy
	// Grace is how long a running effect may continue after ctx ended; 0 means 8 s. A step that only waits for its proof
	// ends at once.
	Grace time.Duration
	// Actor is the actor of the events; "" means "operator".
	Actor string
	// Now returns the time by the journal's clock; nil means time.Now.
	Now func() time.Time
}

// actorOperator is the actor of EKCO's own decisions.
const actorOperator = "operator"

// Runner runs actions. It is safe for concurrent use and keeps no state between calls: the journal has all of it.
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

// kindFor returns the action's kind, with the definition for its subject; nil if this EKCO does not know it.
func (r *Runner) kindFor(record journal.ActionRecord) *Kind {
	kind := r.kinds[record.Kind]
	if kind == nil || kind.For == nil {
		return kind
	}
	of := *kind
	of.Definition = kind.For(record.Subject)
	return &of
}

// Run runs or resumes an action, and returns nil when action.ended is on disk. At most one Run per action may be active.
//
// When ctx ends, running effects get [Config.Grace] to finish. Steps that do not finish, or only wait for their proof,
// stay open in the journal, and Run returns ctx's error. If the journal cannot be written, Run starts nothing more and
// returns the error, which wraps [journal.ErrUnwritable]. In both cases a later Run with the newly folded record
// continues the action.
//
// The caller must pass to the inbox, which may be nil, the events of the action that others append after the record was
// folded.
func (r *Runner) Run(ctx context.Context, record journal.ActionRecord, inbox *Inbox) error {
	if record.Ended != nil {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	return r.newRun(WithLife(ctx), record).runToEnd(inbox) //nolint:contextcheck // a run has three contexts, which end at different times
}

// lifeKey is the key of a run's own context.
type lifeKey struct{}

// WithLife returns a context that is the [Life] of all contexts derived from it.
func WithLife(ctx context.Context) context.Context { return context.WithValue(ctx, lifeKey{}, ctx) }

// Life returns the context of the run to which a step or preflight belongs, nil outside of a run. It is for work that
// continues between the steps of an action.
func Life(ctx context.Context) context.Context {
	life, _ := ctx.Value(lifeKey{}).(context.Context)
	return life
}

// preflight finds a preflight by name.
func (r *Runner) preflight(kind *Kind, name string) (Preflight, bool) {
	if p, ok := kind.Preflights[name]; ok {
		return p, true
	}
	p, ok := r.cfg.Preflights[name]
	return p, ok
}
