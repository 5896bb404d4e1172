package actions

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Config is what a [Runner] is made of.
type Config struct {
	Store journal.Store
	Log   *slog.Logger
	// Kinds are what it can do.
	Kinds []Kind
	// Preflights by the name that plans use. A step that lists a preflight which
	// neither its kind nor this map has is held.
	// [SafeMode] and the Rules of a kind are asked before every step as well, whatever
	// their plans list. So is [Mirrored], unless it is missing here, before every
	// irreversible one.
	Preflights map[string]Preflight
	// Watcher is told what steps report; nil for nobody.
	Watcher Watcher
	// Domains lets steps of different actions take turns; nil where there is only one
	// action at a time.
	Domains Domains
	Retry   RetryPolicy
	// Grace is how long a running effect may go on after Run was told to stop;
	// 0 means 8 s. A step that only waits for its proof gets none.
	Grace time.Duration
	// Actor is named in the events; "" means "operator".
	Actor string
	// Now reads the clock that the journal's times are by; nil means time.Now.
	Now func() time.Time
}

// actorOperator is the actor of what EKCO decides by itself.
const actorOperator = "operator"

// Runner runs actions. It is safe for concurrent use, and keeps nothing
// between two calls: everything is in the journal.
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

// kindOf returns what is done for the action, nil if this EKCO does not know its kind.
func (r *Runner) kindOf(record journal.ActionRecord) *Kind {
	kind := r.kinds[record.Kind]
	if kind == nil || kind.For == nil {
		return kind
	}
	of := *kind
	of.Definition = kind.For(record.Subject)
	return &of
}

// Run runs an action, or resumes one, and returns nil when action.ended is on
// disk. At most one Run per action may be under way.
//
// When ctx ends, running effects get [Config.Grace] to finish; steps that do not,
// and those that only wait for their proof, are left open in the journal, and
// ctx's error is returned. When the journal cannot be written, nothing more is
// started and the error, which wraps [journal.ErrUnwritable], is returned. In
// both cases a later Run with the newly folded record takes up the action where
// it was.
//
// What others append to the action after the record was folded is to be told in the
// inbox, which may be nil.
func (r *Runner) Run(ctx context.Context, record journal.ActionRecord, inbox *Inbox) error {
	if record.Ended != nil {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	return r.newRun(WithLife(ctx), record).toItsEnd(inbox) //nolint:contextcheck // a run has three contexts, which end at different times
}

// lifeKey is the key of a run's own context.
type lifeKey struct{}

// WithLife makes a context the [Life] of those that are made of it.
func WithLife(ctx context.Context) context.Context { return context.WithValue(ctx, lifeKey{}, ctx) }

// Life returns the context of the run that a step or a preflight belongs to, nil outside of one. What goes on between
// the steps of an action ends with it.
func Life(ctx context.Context) context.Context {
	life, _ := ctx.Value(lifeKey{}).(context.Context)
	return life
}

// preflight finds a check by name.
func (r *Runner) preflight(kind *Kind, name string) (Preflight, bool) {
	if p, ok := kind.Preflights[name]; ok {
		return p, true
	}
	p, ok := r.cfg.Preflights[name]
	return p, ok
}
