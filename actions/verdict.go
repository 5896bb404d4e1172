package actions

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Preflight is a named check that runs before the steps that list it, also
// when they are repeated. It must honour ctx, change nothing, and be safe for
// concurrent use. The record must not be changed.
type Preflight interface {
	Check(ctx context.Context, record journal.ActionRecord) Verdict
}

// PreflightFunc is a function used as a [Preflight].
type PreflightFunc func(ctx context.Context, record journal.ActionRecord) Verdict

// Check implements [Preflight].
func (f PreflightFunc) Check(ctx context.Context, record journal.ActionRecord) Verdict {
	return f(ctx, record)
}

// Verdict is a preflight's answer.
type Verdict struct {
	Kind VerdictKind
	// Reason is for people. With a [VerdictPass] it is empty, or why EKCO goes on
	// although it was to wait; it is then put on record.
	Reason string
	// Key names what Reason is about, and stays while its details change: counts, times,
	// what others say. What a person answered, what is on record and what has lasted
	// are compared by preflight and key, never by Reason. It may be empty for a
	// preflight that has one thing to say.
	Key string
	// Advice is what a person can do when a [VerdictAbandon] comes too late, or
	// about a Loss. It may be empty.
	Advice string
	// Loss is set with a [VerdictWarn] about something that cannot be had back. It
	// holds also a manual action that goes on without the person who asked for it,
	// until somebody was told. It must have a key: what was answered before there were
	// keys is no answer to it.
	Loss bool
	// Lasting is how long the verdict must have been the answer, look after look,
	// before it counts; zero means that it counts at once. Until then the step
	// waits, with Meanwhile as the reason.
	Lasting   time.Duration
	Meanwhile string
	// Grace is how long the verdict may hold a step before it needs a person; with zero it never does.
	Grace time.Duration
	// List is set with a [VerdictHold] whose reason is a list, and whose key is of that list: a force must name it.
	List bool
	// Brief is set with a [VerdictHold] about what often takes seconds: see [Verdict.Briefly].
	Brief bool
}

// VerdictKind is what follows from a verdict.
type VerdictKind string

// The verdicts, mildest first.
const (
	// VerdictPass lets the step start.
	VerdictPass VerdictKind = "pass"
	// VerdictWarn lets the step of a manual action start, after the warning is
	// recorded. It holds an automatic action.
	VerdictWarn VerdictKind = "warn"
	// VerdictHold makes the step wait; the check is repeated until it passes.
	VerdictHold VerdictKind = "hold"
	// VerdictAbandon ends the action before its point of no return, because its
	// reason went away. After that point it makes the step wait.
	VerdictAbandon VerdictKind = "abandon"
	// VerdictUnasked is no answer. [Runner.Explain] alone gives it, for a preflight
	// that cannot be asked without writing something.
	VerdictUnasked VerdictKind = "not asked"
)

// Pass returns the verdict that nothing speaks against the step.
func Pass() Verdict { return Verdict{Kind: VerdictPass} }

// PassBecause returns the verdict that nothing speaks against the step any more,
// for a reason that is put on record.
func PassBecause(reason string) Verdict { return Verdict{Kind: VerdictPass, Reason: reason} }

// Warn returns the verdict that a person should know the reason.
func Warn(reason string) Verdict { return Verdict{Kind: VerdictWarn, Reason: reason} }

// WarnOfLoss returns the verdict that a person must know the reason, and what
// can be done. The key says what is lost.
func WarnOfLoss(key, reason, advice string) Verdict {
	return Verdict{Kind: VerdictWarn, Key: key, Reason: reason, Advice: advice, Loss: true}
}

// About returns the verdict with that key.
func (v Verdict) About(key string) Verdict {
	v.Key = key
	return v
}

// AboutList returns the verdict as one about a list with that key.
func (v Verdict) AboutList(key string) Verdict {
	v.Key, v.List = key, true
	return v
}

// Briefly returns a hold about what often takes seconds: the check is repeated [RetryPolicy.HoldInitial]
// later for the first minute or so, and only then with growing pauses.
func (v Verdict) Briefly() Verdict {
	v.Brief = true
	return v
}

// OnceLasting returns the verdict as one that counts only once it has lasted, for
// what often passes by itself. Until then the step waits, with meanwhile as the
// reason.
func (v Verdict) OnceLasting(span time.Duration, meanwhile string) Verdict {
	v.Lasting, v.Meanwhile = span, meanwhile
	return v
}

// Hold returns the verdict that the step must wait.
func Hold(reason string) Verdict { return Verdict{Kind: VerdictHold, Reason: reason} }

// Abandon returns the verdict that the action has lost its reason.
func Abandon(reason string) Verdict { return Verdict{Kind: VerdictAbandon, Reason: reason} }

// tooLate turns a [VerdictAbandon] into what it is after the point of no return.
func (v Verdict) tooLate() Verdict {
	reason := v.Reason + "; the action is past its point of no return and waits until that changes"
	if v.Advice != "" {
		reason += ": " + v.Advice
	}
	return Hold(reason).About(v.Key)
}

// held turns a verdict that does not let a step start into the hold it comes to.
func (v Verdict) held() Verdict {
	if v.Kind == VerdictHold {
		return v
	}
	hold := Hold(v.Reason).About(v.Key)
	hold.Grace = v.Grace
	return hold
}

// KeyOf returns the key of an error: that which the first in its tree has a method Key
// for, else none. What its message says does not count.
func KeyOf(err error) string {
	if keyed, ok := errors.AsType[keyedError](err); ok {
		return keyed.Key()
	}
	return ""
}

// keyedError is an error that names what it is about.
type keyedError interface {
	error
	Key() string
}

// Check is what a preflight answered.
type Check struct {
	Preflight string
	Verdict   Verdict
}
