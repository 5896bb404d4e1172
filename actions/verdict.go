package actions

import (
	"context"
	"errors"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Preflight is a named check that runs before each attempt of the steps that list it. It must honour ctx, change
// nothing, not even the record, and be safe for concurrent use.
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
	// Reason is for people. With a [VerdictPass] it is empty, or it is recorded as the reason why EKCO continues although
	// it would normally wait.
	Reason string
	// Key names what Reason is about. It stays the same while details such as counts and times change. Verdicts are
	// compared by preflight and key, never by Reason. It may be empty if the preflight has only one reason.
	Key string
	// Advice is what a person can do if a [VerdictAbandon] comes too late, or about a Loss. It may be empty.
	Advice string
	// Loss is set with a [VerdictWarn] about something that cannot be restored. It also holds a manual action that
	// continues unattended, see [run.isAttended], until a person has seen the warning. It must have a key, so that an
	// answer of a version before keys does not count.
	Loss bool
	// Lasting is how long the preflight must repeat the verdict before it counts; zero means that it counts at once.
	// Until then the step waits, with Meanwhile as the reason.
	Lasting   time.Duration
	Meanwhile string
	// Grace is how long the verdict may hold a step before it needs a person; zero means that it never does.
	Grace time.Duration
	// List is set with a [VerdictHold] whose reason is a list, and whose key identifies that list: a force must name it.
	List bool
	// Brief is set with a [VerdictHold] that often ends in seconds: see [Verdict.Briefly].
	Brief bool
}

// VerdictKind is the effect of a verdict.
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
	// VerdictAbandon ends the action, because the reason for it no longer exists. After the point of no return it makes
	// the step wait.
	VerdictAbandon VerdictKind = "abandon"
	// VerdictUnasked is given only by [Runner.Explain], for a preflight that it does not ask because it writes.
	VerdictUnasked VerdictKind = "not asked"
)

// Pass returns the verdict that the step may start.
func Pass() Verdict { return Verdict{Kind: VerdictPass} }

// PassBecause returns the verdict that the step may start, for a reason that is recorded.
func PassBecause(reason string) Verdict { return Verdict{Kind: VerdictPass, Reason: reason} }

// Warn returns a verdict that warns with the reason.
func Warn(reason string) Verdict { return Verdict{Kind: VerdictWarn, Reason: reason} }

// WarnOfLoss returns the warning of a [Verdict.Loss]. The key names what is lost.
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

// Briefly marks a hold that often ends in seconds: the check is repeated every [RetryPolicy.HoldInitial] for the first
// minute or so, and only then with growing pauses.
func (v Verdict) Briefly() Verdict {
	v.Brief = true
	return v
}

// OnceLasting makes the verdict count only after it has lasted for span, because its cause often disappears. Until then
// the step waits, with meanwhile as the reason.
func (v Verdict) OnceLasting(span time.Duration, meanwhile string) Verdict {
	v.Lasting, v.Meanwhile = span, meanwhile
	return v
}

// Hold returns the verdict that the step must wait.
func Hold(reason string) Verdict { return Verdict{Kind: VerdictHold, Reason: reason} }

// Abandon returns the verdict that the reason for the action no longer exists.
func Abandon(reason string) Verdict { return Verdict{Kind: VerdictAbandon, Reason: reason} }

// tooLate turns a [VerdictAbandon] into a hold, for an action past its point of no return.
func (v Verdict) tooLate() Verdict {
	reason := v.Reason + "; the action is past its point of no return and waits until that changes"
	if v.Advice != "" {
		reason += ": " + v.Advice
	}
	return Hold(reason).About(v.Key)
}

// held turns a verdict that does not let a step start into a hold.
func (v Verdict) held() Verdict {
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

// keyedError is an error that names what it is about.
type keyedError interface {
	error
	Key() string
}

// Check is a preflight's answer.
type Check struct {
	Preflight string
	Verdict   Verdict
}
