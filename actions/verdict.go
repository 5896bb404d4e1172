package actions

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Preflight is a named check that runs before each attempt of the steps that list it. It must honour ctx, change
// nothing (not even the record), and be safe for concurrent use.
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
	// Reason is a text for persons. With a [VerdictPass] it is empty, or it is recorded as the reason why EKCO
	// continues although it would normally wait.
	Reason string
	// Key identifies the cause of the verdict. It stays the same while details such as counts and times change. EKCO
	// compares verdicts by preflight and key, never by Reason. Key may be empty if the preflight has only one cause.
	Key string
	// Advice is what a person can do about a Loss, or about a [VerdictAbandon] that is too late. It may be empty.
	Advice string
	// Loss is true for a [VerdictWarn] about data that cannot be restored. If no person has seen this warning, it also
	// holds a manual action that continues unattended (see [run.isAttended]). The verdict must have a key, because a
	// person's answer is recorded for a key.
	Loss bool
	// Lasting is how long the preflight must repeat the verdict before it takes effect; zero means at once. Until then
	// the step waits, with Meanwhile as the reason.
	Lasting   time.Duration
	Meanwhile string
	// Grace is how long the verdict may hold a step before a person is needed; zero means forever.
	Grace time.Duration
	// List is true for a [VerdictHold] whose reason is a list. The key then identifies the list, and a force must name
	// the key.
	List bool
	// Brief is true for a [VerdictHold] that often ends in seconds; see [Verdict.Briefly].
	Brief bool
}

// VerdictKind is the effect of a verdict.
type VerdictKind string

// The verdicts, mildest first.
const (
	// VerdictPass lets the step start.
	VerdictPass VerdictKind = "pass"
	// VerdictWarn lets the step of a manual action start after the warning is recorded. It holds an automatic action.
	VerdictWarn VerdictKind = "warn"
	// VerdictHold makes the step wait; the check is repeated until it passes.
	VerdictHold VerdictKind = "hold"
	// VerdictAbandon ends the action, because the reason for it no longer exists. After the point of no return it makes
	// the step wait instead.
	VerdictAbandon VerdictKind = "abandon"
	// VerdictUnasked is returned only by [Runner.Explain], for a preflight that it does not run because the preflight
	// writes.
	VerdictUnasked VerdictKind = "not asked"
)

// Pass returns a verdict that lets the step start.
func Pass() Verdict { return Verdict{Kind: VerdictPass} }

// PassBecause returns a verdict that lets the step start, with a reason that is recorded.
func PassBecause(reason string) Verdict { return Verdict{Kind: VerdictPass, Reason: reason} }

// Warn returns a verdict that warns a person.
func Warn(reason string) Verdict { return Verdict{Kind: VerdictWarn, Reason: reason} }

// WarnOfLoss returns a warning with [Verdict.Loss]. The key names what would be lost.
func WarnOfLoss(key, reason, advice string) Verdict {
	return Verdict{Kind: VerdictWarn, Key: key, Reason: reason, Advice: advice, Loss: true}
}

// About sets the key.
func (v Verdict) About(key string) Verdict {
	v.Key = key
	return v
}

// AboutList sets the key and marks the reason as a list.
func (v Verdict) AboutList(key string) Verdict {
	v.Key, v.List = key, true
	return v
}

// Briefly marks a hold that often ends in seconds. EKCO repeats the check every [RetryPolicy.HoldInitial] for the first
// 12 times, and then with growing pauses.
func (v Verdict) Briefly() Verdict {
	v.Brief = true
	return v
}

// OnceLasting makes the verdict take effect only after it has lasted for span, because its cause often disappears.
// Until then the step waits, with meanwhile as the reason.
func (v Verdict) OnceLasting(span time.Duration, meanwhile string) Verdict {
	v.Lasting, v.Meanwhile = span, meanwhile
	return v
}

// Hold returns a verdict that makes the step wait.
func Hold(reason string) Verdict { return Verdict{Kind: VerdictHold, Reason: reason} }

// Abandon returns a verdict that ends the action, because the reason for the action no longer exists.
func Abandon(reason string) Verdict { return Verdict{Kind: VerdictAbandon, Reason: reason} }

// holdIfTooLate turns a [VerdictAbandon] into a hold, for an action past its point of no return.
func (v Verdict) holdIfTooLate() Verdict {
	reason := v.Reason + "; the action is past its point of no return, so it waits until this reason is gone"
	if v.Advice != "" {
		reason += ": " + v.Advice
	}
	return Hold(reason).About(v.Key)
}

// asHold returns a hold if the verdict does not let a step start.
func (v Verdict) asHold() Verdict {
	if v.Kind == VerdictHold {
		return v
	}
	hold := Hold(v.Reason).About(v.Key)
	hold.Grace = v.Grace
	return hold
}

// KeyOf returns the key of the first error in the tree that has a method Key, or "".
func KeyOf(err error) string {
	if keyed, ok := errors.AsType[keyedError](err); ok {
		return keyed.Key()
	}
	return ""
}

// keyedError is an error with a key that identifies its cause.
type keyedError interface {
	error
	Key() string
}

// Check is the name and the verdict of a preflight.
type Check struct {
	Preflight string
	Verdict   Verdict
}
